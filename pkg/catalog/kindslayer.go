package catalog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog/internal/frame"
)

// The layer of kinds is a sequence of zstd frames, each with whole lines of at most frameSize bytes. It begins with a
// skippable frame that contains the skip table: unsigned variable-length integers 1, number of frames, and for each
// frame its packed size, its raw size, its number of lines, and its first key, preceded by the length. The key of a
// line is the kind, a tab and the group.
const (
	frameSize    = 64 << 10
	maxFrameSize = 1 << 20
	maxFrames    = 100_000
	skipMagic    = "\x50\x2a\x4d\x18"
	tableVersion = 1
	maxKey       = maxLabel + 1 + maxName
)

// skipEntry locates a frame.
type skipEntry struct {
	offset, packed, raw, rows int
	key                       string
}

// encodeKinds returns the layer of kinds of a catalog.
func encodeKinds(c *Catalog, coder *frame.Coder) ([]byte, error) {
	positions := make(map[string]int, len(c.Packages))
	for i, p := range c.Packages {
		positions[p.Repository] = i
	}
	b := kindsBuilder{coder: coder}
	for i := range c.Kinds {
		k := &c.Kinds[i]
		position, known := positions[k.Repository]
		if !known {
			return nil, ErrInvalidIndex.New(nil, "kind %s belongs to the unknown package %.200q", k.Kind, k.Repository)
		}
		if err := b.add(k.Kind+"\t"+k.Group, kindLine(k, position)); err != nil {
			return nil, err
		}
	}
	if err := b.flush(); err != nil {
		return nil, err
	}
	table := binary.AppendUvarint(nil, tableVersion)
	table = binary.AppendUvarint(table, uint64(len(b.table)))
	for _, e := range b.table {
		for _, n := range []int{e.packed, e.raw, e.rows, len(e.key)} {
			table = binary.AppendUvarint(table, uint64(n)) // no number is negative
		}
		table = append(table, e.key...)
	}
	out := binary.LittleEndian.AppendUint32([]byte(skipMagic), uint32(len(table))) // at most maxFrames entries
	return append(append(out, table...), b.frames...), nil
}

// kindsBuilder collects lines into frames.
type kindsBuilder struct {
	coder  *frame.Coder
	table  []skipEntry
	frames []byte
	raw    []byte
	rows   int
	key    string
}

func (b *kindsBuilder) add(key, line string) error {
	if len(b.raw)+len(line)+1 > frameSize {
		if err := b.flush(); err != nil {
			return err
		}
	}
	if b.rows == 0 {
		b.key = key
	}
	b.raw = append(append(b.raw, line...), '\n')
	b.rows++
	return nil
}

func (b *kindsBuilder) flush() error {
	if b.rows == 0 {
		return nil
	}
	packed, err := b.coder.Encode(b.raw)
	if err != nil {
		return err
	}
	b.table = append(b.table, skipEntry{packed: len(packed), raw: len(b.raw), rows: b.rows, key: b.key})
	b.frames = append(b.frames, packed...)
	b.raw, b.rows = b.raw[:0], 0
	return nil
}

// kindsLayer is an opened layer of kinds. It is not safe for concurrent use.
type kindsLayer struct {
	data  []byte
	table []skipEntry
	coder *frame.Coder
	// buffer has the content of the last frame.
	buffer []byte
}

// openKinds reads the skip table. The frames must fill the layer.
func openKinds(data []byte) (*kindsLayer, error) {
	if len(data) < 8 || string(data[:4]) != skipMagic {
		return nil, errors.New("the layer of kinds has no skip table")
	}
	size := uint64(binary.LittleEndian.Uint32(data[4:8]))
	if size > uint64(len(data)-8) {
		return nil, errors.New("the skip table is truncated")
	}
	l := &kindsLayer{data: data, coder: new(frame.Coder)}
	return l, l.readTable(data[8:8+size], int(8+size)) // size is at most the length of the data
}

func (l *kindsLayer) readTable(table []byte, offset int) error {
	number := func(most int) (int, error) {
		n, size := binary.Uvarint(table)
		if size <= 0 || n > uint64(most) {
			return 0, errors.New("a number in the skip table is not valid")
		}
		table = table[size:]
		return int(n), nil
	}
	version, err := number(tableVersion)
	if err != nil || version != tableVersion {
		return errors.New("the skip table has another version")
	}
	count, err := number(maxFrames)
	if err != nil {
		return err
	}
	for range count {
		e := skipEntry{offset: offset}
		var length int
		for _, n := range []struct {
			into *int
			most int
		}{{&e.packed, len(l.data) - offset}, {&e.raw, maxFrameSize}, {&e.rows, maxFrameSize},
			{&length, min(maxKey, len(table))}} {
			if *n.into, err = number(n.most); err != nil {
				return err
			}
		}
		if length > len(table) || e.packed == 0 || e.rows == 0 {
			return errors.New("the skip table is truncated")
		}
		e.key, table = string(table[:length]), table[length:]
		if n := len(l.table); n > 0 && compareKeyTexts(l.table[n-1].key, e.key) > 0 {
			return errors.New("the skip table is not sorted")
		}
		l.table = append(l.table, e)
		offset += e.packed
	}
	if len(table) > 0 || offset != len(l.data) {
		return errors.New("the skip table does not cover the layer")
	}
	return nil
}

// compareKeyTexts orders keys as the kinds of a catalog: by lower-case kind, kind and group.
func compareKeyTexts(a, b string) int {
	x, xGroup, _ := strings.Cut(a, "\t")
	y, yGroup, _ := strings.Cut(b, "\t")
	return cmp.Or(cmp.Compare(strings.ToLower(x), strings.ToLower(y)), cmp.Compare(x, y), cmp.Compare(xGroup, yGroup))
}

// frame returns the lines of a frame, after it has compared them with the skip table.
func (l *kindsLayer) frame(i int) (string, error) {
	e := &l.table[i]
	content, err := l.coder.DecodeInto(l.buffer, l.data[e.offset:e.offset+e.packed], e.raw)
	if err != nil {
		return "", err
	}
	l.buffer = content
	text := string(content)
	switch {
	case len(text) != e.raw || strings.Count(text, "\n") != e.rows || !strings.HasSuffix(text, "\n"):
		return "", errors.New("a frame of kinds differs from the skip table")
	case lineKey(text) != e.key:
		return "", fmt.Errorf("a frame of kinds begins with %.100q, not with %.100q", lineKey(text), e.key)
	case i+1 < len(l.table) && compareKeyTexts(lineKey(lastLine(text)), l.table[i+1].key) > 0:
		return "", errors.New("a frame of kinds extends over the next one")
	}
	return text, nil
}

// lineKey returns the kind and the group at the start of a line.
func lineKey(line string) string {
	kind := strings.IndexByte(line, '\t')
	if kind < 0 {
		return ""
	}
	group := strings.IndexByte(line[kind+1:], '\t')
	if group < 0 {
		return ""
	}
	return line[:kind+1+group]
}

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// scan calls visit for the lines of all frames, until visit returns an error.
func (l *kindsLayer) scan(visit func(line string) error) error {
	return l.scanFrames(func(string) bool { return true }, visit)
}

// scanFrames calls visit for the lines of the frames that the filter selects, until visit returns an error.
func (l *kindsLayer) scanFrames(filter func(text string) bool, visit func(line string) error) error {
	for i := range l.table {
		text, err := l.frame(i)
		if err != nil {
			return err
		}
		if !filter(text) {
			continue
		}
		for line := range strings.Lines(text) {
			if err := visit(line[:len(line)-1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// find calls visit for the lines of a kind, in any case. It decompresses only the frames that can contain them.
func (l *kindsLayer) find(kind string, visit func(line string) error) error {
	kind = strings.ToLower(kind)
	kindOf := func(line string) string {
		name, _, _ := strings.Cut(line, "\t")
		return strings.ToLower(name)
	}
	for i := range l.table {
		if kindOf(l.table[i].key) > kind {
			break
		}
		if i+1 < len(l.table) && kindOf(l.table[i+1].key) < kind {
			continue
		}
		text, err := l.frame(i)
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			if kindOf(line) != kind {
				continue
			}
			if err := visit(line[:len(line)-1]); err != nil {
				return err
			}
		}
	}
	return nil
}
