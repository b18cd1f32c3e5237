package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrNoPackageYAML is the failure of an image without package.yaml in its root.
var ErrNoPackageYAML = failure.Register(failure.Code{
	Name: "NoPackageYAML", Class: failure.Invalid,
	Cause: "There is no file package.yaml in the root of the base layer, or of the image when no layer is annotated as the base.",
	Fix:   "Check that the reference names a package; build it with xpkg build.",
})

// ErrNotRegularFile is the failure of a package.yaml that is a link, a directory,
// a device or a sparse file.
var ErrNotRegularFile = failure.Register(failure.Code{
	Name: "NotRegularFile", Class: failure.Invalid,
	Cause: "The entry package.yaml is not an ordinary file.",
	Fix:   "Build the package again with package.yaml as an ordinary file.",
})

// ErrDuplicateEntry is the failure of a layer with two entries for package.yaml:
// readers would not agree on which of them counts.
var ErrDuplicateEntry = failure.Register(failure.Code{
	Name: "DuplicateEntry", Class: failure.Invalid,
	Cause: "A layer has more than one entry for package.yaml.",
	Fix:   "Build the package again with a single package.yaml.",
})

// streamName is the file of the package (xpkg specification, "Layers").
const streamName = "package.yaml"

// Whiteouts of the OCI image specification, "Applying Changesets".
const (
	whiteoutStream = ".wh." + streamName
	opaqueRoot     = ".wh..wh..opq"
)

// layerScan is what a layer says about package.yaml.
type layerScan struct {
	// stream is the file, nil when the layer does not have it.
	stream []byte
	found  bool
	// hidden says that the layer removes the file from the layers below.
	hidden bool
	// aside are entries that look like package.yaml and are not in the root.
	aside []string
}

// tarScanner reads a whole tar and keeps the one file in it that matters. It
// reads to the end even when it has the file: only the end proves that there is
// no second one.
type tarScanner struct {
	limits Limits
	most   outputLimit
	// room, when it is set, waits for the memory that the file takes.
	room    func(bytes int64) error
	entries int
	headers int64
	scan    layerScan
	// blocked is an entry that takes the place of package.yaml.
	blocked error
}

// scanLayer reads the tar of an unpacked layer. Most is how many bytes it can
// hold, so that sizes in headers are never believed beyond it. Room may be nil.
func scanLayer(r io.Reader, most outputLimit, limits Limits, room func(bytes int64) error) (layerScan, error) {
	s := tarScanner{limits: limits, most: most, room: room}
	tr := tar.NewReader(r)
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return layerScan{}, s.tarError(err)
		}
		if err := s.entry(header, tr); err != nil {
			return layerScan{}, err
		}
	}
	if err := onlyZeros(r); err != nil {
		return layerScan{}, err
	}
	if s.blocked != nil && !s.scan.found {
		return layerScan{}, s.blocked
	}
	return s.scan, nil
}

func (s *tarScanner) entry(h *tar.Header, r io.Reader) error {
	if err := s.count(h); err != nil {
		return err
	}
	if h.Size > s.most.bytes {
		return ErrDecompressionLimit.New(nil, "the entry %q claims %d bytes and its layer may have %d (%s)", clip(h.Name), h.Size, s.most.bytes, s.most.flag)
	}
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	switch rootName(name) {
	case streamName:
		return s.stream(h, r)
	case whiteoutStream, opaqueRoot:
		s.scan.hidden = true
		return nil
	}
	return s.lookalike(h)
}

// count enforces the limits on entries and on the length of headers.
func (s *tarScanner) count(h *tar.Header) error {
	s.entries++
	if s.entries > s.limits.Entries {
		return ErrArchiveLimit.New(nil, "the layer has more than %d entries (--max-entries)", s.limits.Entries)
	}
	s.headers += int64(len(h.Name) + len(h.Linkname))
	for k, v := range h.PAXRecords {
		s.headers += int64(len(k) + len(v))
	}
	if s.headers > s.limits.Headers {
		return ErrArchiveLimit.New(nil, "the headers of the layer have more than %d bytes (--max-header-size)", s.limits.Headers)
	}
	return nil
}

func (s *tarScanner) stream(h *tar.Header, r io.Reader) error {
	if s.scan.found || s.blocked != nil {
		return ErrDuplicateEntry.New(nil, "the layer has %s twice", streamName)
	}
	if kind := irregular(h); kind != "" {
		s.blocked = ErrNotRegularFile.New(nil, "%s is a %s", streamName, kind)
		return nil
	}
	if h.Size > s.limits.Package {
		return ErrPackageTooLarge.New(nil, "%s has %d bytes and may have %d (--max-package-size)", streamName, h.Size, s.limits.Package)
	}
	if s.room != nil {
		if err := s.room(h.Size); err != nil {
			return err
		}
	}
	data := make([]byte, h.Size)
	if _, err := io.ReadFull(r, data); err != nil {
		return s.tarError(err)
	}
	s.scan.stream, s.scan.found = data, true
	return nil
}

// lookalike refuses other spellings of the root's package.yaml, which some tools
// would take for the file, and remembers files of that name elsewhere.
func (s *tarScanner) lookalike(h *tar.Header) error {
	base := path.Base(h.Name)
	if !strings.EqualFold(base, streamName) && !strings.EqualFold(base, "package.yml") {
		return nil
	}
	if path.Join("/", h.Name) == "/"+streamName {
		if s.scan.found || s.blocked != nil {
			return ErrDuplicateEntry.New(nil, "the layer has %s a second time, as %q", streamName, clip(h.Name))
		}
		s.blocked = ErrNoPackageYAML.New(nil, "the layer has %s only under the name %q", streamName, clip(h.Name))
		return nil
	}
	const enough = 3
	if len(s.scan.aside) < enough {
		s.scan.aside = append(s.scan.aside, clip(h.Name))
	}
	return nil
}

// tarError classifies what the tar reader says.
func (s *tarScanner) tarError(err error) error {
	switch {
	case failureOf(err):
		return err
	case s.entries == 0:
		return ErrNotATar.New(nil, "the layer is not a tar")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return ErrBrokenLayer.New(nil, "the tar ends within entry %d", s.entries)
	}
	return ErrBrokenLayer.New(err, "the tar cannot be read after entry %d", s.entries)
}

// rootName gives the name of an entry in the root, "" for any other. Only the
// plain spelling and the one with "./" count.
func rootName(name string) string {
	name = strings.TrimPrefix(name, "./")
	if strings.Contains(name, "/") {
		return ""
	}
	return name
}

// irregular names what an entry is when it is not an ordinary file.
func irregular(h *tar.Header) string {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "sparse file"
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return ""
	case tar.TypeSymlink:
		return "symbolic link"
	case tar.TypeLink:
		return "hard link"
	case tar.TypeDir:
		return "directory"
	case tar.TypeFifo:
		return "named pipe"
	case tar.TypeChar, tar.TypeBlock:
		return "device"
	case tar.TypeGNUSparse:
		return "sparse file"
	}
	return fmt.Sprintf("tar entry of type %q", h.Typeflag)
}

// onlyZeros reads what follows the end of a tar: writers pad with zeros, and
// anything else is content that other readers might see.
func onlyZeros(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return ErrBrokenLayer.New(nil, "the layer has data after the end of its tar")
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
