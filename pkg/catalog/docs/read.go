package docs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/internal/frame"
)

// A Reader reads the parts of a documentation pack. It is safe for concurrent use.
type Reader struct {
	from  io.ReaderAt
	dict  []byte
	parts []location
}

// location locates a part.
type location struct {
	name      string
	offset    int64
	size, raw int
}

// Open reads the table and the dictionary of a pack with a size in bytes. Errors have the code ErrDamaged.
func Open(from io.ReaderAt, size int64) (*Reader, error) {
	r := &Reader{from: from}
	if err := r.open(size); err != nil {
		return nil, ErrDamaged.New(err, "cannot read a documentation pack")
	}
	return r, nil
}

func (r *Reader) open(size int64) error {
	h, err := readHeader(r.from)
	if err != nil {
		return err
	}
	if int64(h.end+h.table+h.dict) > size {
		return errors.New("it is truncated")
	}
	table, err := r.decode(frame.New(nil), int64(h.end), h.table, h.rawTable)
	if err != nil {
		return fmt.Errorf("cannot read the table: %w", err)
	}
	if r.dict, err = r.decode(frame.New(nil), int64(h.end+h.table), h.dict, h.rawDict); err != nil {
		return fmt.Errorf("cannot read the dictionary: %w", err)
	}
	return r.locate(table, int64(h.end+h.table+h.dict), size)
}

// header are the sizes at the start of a pack.
type header struct{ end, table, rawTable, dict, rawDict int }

func readHeader(from io.ReaderAt) (header, error) {
	start := make([]byte, len(magic)+5*binary.MaxVarintLen32)
	n, err := from.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return header{}, err
	}
	rest, ok := bytes.CutPrefix(start[:n], []byte(magic))
	if !ok {
		return header{}, errors.New("it is not a documentation pack")
	}
	var numbers [5]int
	for i, most := range []int{version, maxTable, maxTable, maxDictionary, maxDictionary} {
		value, size := binary.Uvarint(rest)
		if size <= 0 || value > uint64(most) {
			return header{}, errors.New("a size in the header is not valid")
		}
		numbers[i], rest = int(value), rest[size:]
	}
	if numbers[0] != version {
		return header{}, errors.New("it has another version")
	}
	return header{n - len(rest), numbers[1], numbers[2], numbers[3], numbers[4]}, nil
}

// decode reads and decompresses a frame, whose content must have the raw size.
func (r *Reader) decode(c *frame.Coder, offset int64, size, raw int) ([]byte, error) {
	packed := make([]byte, size)
	if n, err := r.from.ReadAt(packed, offset); n < size {
		return nil, fmt.Errorf("it is truncated: %w", err)
	}
	content, err := c.Decode(packed, raw)
	if err == nil && len(content) != raw {
		err = fmt.Errorf("the content has %d bytes, declared are %d", len(content), raw)
	}
	return content, err
}

// locate reads the table. The parts must fill the pack up to its end.
func (r *Reader) locate(table []byte, offset, size int64) error {
	for line := range strings.Lines(string(table)) {
		l, err := parseLocation(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return err
		}
		if n := len(r.parts); n == maxParts || n > 0 && r.parts[n-1].name >= l.name {
			return errors.New("the table is too long or not sorted")
		}
		l.offset = offset
		offset += int64(l.size)
		r.parts = append(r.parts, l)
	}
	if offset != size {
		return fmt.Errorf("the parts end at %d of %d bytes", offset, size)
	}
	return nil
}

func parseLocation(line string) (location, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 3 || fields[0] == "" || len(fields[0]) > maxName {
		return location{}, errors.New("a line of the table is not valid")
	}
	size, err := strconv.ParseUint(fields[1], 10, 31)
	if err != nil {
		return location{}, err
	}
	raw, err := strconv.ParseUint(fields[2], 10, 31)
	if err != nil || raw > maxPart {
		return location{}, fmt.Errorf("a part has too many bytes: %.20q", fields[2])
	}
	return location{name: fields[0], size: int(size), raw: int(raw)}, nil
}

// part returns the content of a part, and nil if there is none. Errors have the code ErrDamaged.
func (r *Reader) part(name string) ([]byte, error) {
	i, found := slices.BinarySearchFunc(r.parts, name, func(l location, n string) int { return strings.Compare(l.name, n) })
	if !found {
		return nil, nil
	}
	content, err := r.decode(frame.New(r.dict), r.parts[i].offset, r.parts[i].size, r.parts[i].raw)
	if err != nil {
		return nil, ErrDamaged.New(err, "cannot read %.300q of a documentation pack", name)
	}
	return content, nil
}

// Info returns the description of the package.
func (r *Reader) Info() (Info, error) {
	text, err := r.part("package")
	if err != nil || text == nil {
		return Info{}, err
	}
	var info Info
	if err := json.Unmarshal(text, &info); err != nil {
		return Info{}, ErrDamaged.New(err, "cannot read the description of a package")
	}
	return info, nil
}

// Readme returns the readme, and "" if there is none.
func (r *Reader) Readme() (string, error) {
	text, err := r.part("readme")
	return string(text), err
}

// ReleaseNotes returns the release notes, and "" if there are none.
func (r *Reader) ReleaseNotes() (string, error) {
	text, err := r.part("release-notes")
	return string(text), err
}

// Icon returns the icon, and nil if there is none. The image is as the author wrote it.
func (r *Reader) Icon() (*Icon, error) {
	text, err := r.part("icon")
	if err != nil || text == nil {
		return nil, err
	}
	mediaType, data, _ := bytes.Cut(text, []byte("\n"))
	return &Icon{string(mediaType), data}, nil
}

// KindNames returns the groups and kinds of the pack, ordered by group and kind, without reading them.
func (r *Reader) KindNames() []KindName {
	var out []KindName
	for _, l := range r.parts {
		if name, isKind := strings.CutPrefix(l.name, "crd/"); isKind {
			group, kind, _ := strings.Cut(name, "/")
			out = append(out, KindName{group, kind})
		}
	}
	return out
}

// A KindName identifies a kind.
type KindName struct{ Group, Kind string }

// Kind returns a kind with its schemas and examples. It fails with ErrNotFound if the pack does not have it.
func (r *Reader) Kind(group, kind string) (Kind, error) {
	text, err := r.part("crd/" + group + "/" + kind)
	switch {
	case err != nil:
		return Kind{}, err
	case text == nil:
		return Kind{}, ErrNotFound.New(nil, "the documentation does not contain %.200q of group %.200q", kind, group)
	}
	role, crd, _ := bytes.Cut(text, []byte("\n"))
	k := Kind{Group: group, Kind: kind, Role: catalog.Role(role), CRD: crd}
	examples, err := r.part("examples/" + group + "/" + kind)
	if err != nil || examples == nil {
		return k, err
	}
	if err := json.Unmarshal(examples, &k.Examples); err != nil {
		return Kind{}, ErrDamaged.New(err, "cannot read the examples of %.200q", kind)
	}
	return k, nil
}
