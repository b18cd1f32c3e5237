package oci

import (
	"archive/tar"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// ErrNoPackageYAML is the code for an image without package.yaml in its root.
var ErrNoPackageYAML = errcode.Code{
	Name: "NoPackageYAML", Class: errcode.Invalid,
	Cause: "There is no file package.yaml in the root of the base layer, or of the image if no layer is annotated as the base.",
	Fix:   "Check that the reference names a package; build it with xpkg build.",
}

// ErrNotRegularFile is the code for a package.yaml that is a link, a directory,
// a device or a sparse file.
var ErrNotRegularFile = errcode.Code{
	Name: "NotRegularFile", Class: errcode.Invalid,
	Cause: "The entry package.yaml is not a regular file.",
	Fix:   "Build the package again with package.yaml as a regular file.",
}

// ErrDuplicateEntry is the code for a layer with two entries for package.yaml: readers
// disagree about which one applies.
var ErrDuplicateEntry = errcode.Code{
	Name: "DuplicateEntry", Class: errcode.Invalid,
	Cause: "A layer has more than one entry for package.yaml.",
	Fix:   "Build the package again with a single package.yaml.",
}

// PackageFile is the file of the package (xpkg specification, "Layers").
const PackageFile = "package.yaml"

// whiteoutStream removes package.yaml from the layers below.
const whiteoutStream = tarfile.WhiteoutPrefix + PackageFile

// layerScan is the result of the search for package.yaml in one layer.
type layerScan struct {
	// found reports whether the layer contains the file.
	found bool
	// hidden reports whether the layer removes the file from the layers below.
	hidden bool
	// link is the target of the file if it is a hard link, and "" otherwise.
	link string
	// aside lists entries named package.yaml outside of the root.
	aside []string
}

// fileUse reads a file with a size in bytes.
type fileUse func(size int64, r io.Reader) error

// tarScanner reads a whole tar and uses the one file in it that matters. It always reads to
// the end, because a second entry would be an error.
type tarScanner struct {
	limits Limits
	most   outputLimit
	// use reads the file.
	use     fileUse
	counter tarfile.Counter
	scan    layerScan
	// blocked describes an entry in the place of package.yaml that is not a regular file.
	blocked error
	// target, if set, is the file to which package.yaml is a hard link.
	target string
	// linked reports that the hard link has been read.
	linked bool
}

// scanLayer reads the tar of an unpacked layer. The parameter most bounds the size of the
// tar, and thereby the sizes in headers.
func scanLayer(r io.Reader, most outputLimit, limits Limits, use fileUse) (layerScan, error) {
	s := tarScanner{limits: limits, most: most, use: use}
	if err := s.read(r); err != nil {
		return layerScan{}, err
	}
	if s.blocked != nil && !s.scan.found && s.scan.link == "" {
		return layerScan{}, s.blocked
	}
	return s.scan, nil
}

// scanLink reads the tar again and returns the regular file to which package.yaml is a hard
// link. The file must precede the link, as required for extraction.
func scanLink(r io.Reader, most outputLimit, limits Limits, use fileUse, target string) (layerScan, error) {
	s := tarScanner{limits: limits, most: most, use: use, target: target}
	if err := s.read(r); err != nil {
		return layerScan{}, err
	}
	if !s.scan.found {
		return layerScan{}, ErrNotRegularFile.New(
			nil, "%s is a hard link to %q, which is not a regular file before it in the layer", PackageFile, text.Clip(target),
		)
	}
	return s.scan, nil
}

func (s *tarScanner) read(r io.Reader) error {
	sniffer := &tarfile.Sniffer{R: r}
	tr := tar.NewReader(sniffer)
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return onlyZeros(r)
		}
		if err != nil {
			return TarError(err, s.counter.Entries, sniffer.IsTar())
		}
		if err := s.entry(header, tr); err != nil {
			return err
		}
	}
}

// linkedEntry reads the file to which package.yaml is a hard link. It rejects a second entry
// with that name, because readers disagree about which one applies.
func (s *tarScanner) linkedEntry(h *tar.Header, r io.Reader) error {
	switch cleanName(h.Name) {
	case PackageFile:
		s.linked = true
	case s.target:
		if s.scan.found {
			return ErrDuplicateEntry.New(
				nil, "the layer contains %q twice, and %s is a hard link to it", text.Clip(s.target), PackageFile,
			)
		}
		if s.linked || tarfile.Irregular(h) != "" {
			return nil
		}
		return s.useFile(h, r)
	}
	return nil
}

// cleanName returns the path of an entry below the root.
func cleanName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

func (s *tarScanner) entry(h *tar.Header, r io.Reader) error {
	if err := s.count(h); err != nil {
		return err
	}
	if h.Size > s.most.bytes {
		return ErrDecompressionLimit.New(
			nil, "the entry %q declares %d bytes, but its layer can have at most %d (%s)", text.Clip(h.Name), h.Size,
			s.most.bytes, s.most.flag,
		)
	}
	if s.target != "" {
		return s.linkedEntry(h, r)
	}
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	switch rootName(name) {
	case PackageFile:
		return s.stream(h, r)
	case whiteoutStream, tarfile.OpaqueWhiteout:
		s.scan.hidden = true
		return nil
	}
	return s.lookalike(h)
}

// count enforces the limits on entries and on the length of headers.
func (s *tarScanner) count(h *tar.Header) error {
	s.counter.Add(h)
	return CheckTar(s.counter.Entries, s.counter.Headers, s.limits)
}

// CheckTar fails with ErrArchiveLimit when a tar has more entries, or more bytes in
// its headers, than the limits allow.
func CheckTar(entries int, headers int64, limits Limits) error {
	if entries > limits.Entries {
		return ErrArchiveLimit.New(nil, "the layer has more than %d entries (--max-entries)", limits.Entries)
	}
	if headers > limits.Headers {
		return ErrArchiveLimit.New(
			nil, "the headers of the layer have more than %d bytes (--max-header-size)", limits.Headers,
		)
	}
	return nil
}

func (s *tarScanner) stream(h *tar.Header, r io.Reader) error {
	if s.scan.found || s.blocked != nil {
		return ErrDuplicateEntry.New(nil, "the layer contains %s twice", PackageFile)
	}
	if kind := tarfile.Irregular(h); kind != "" {
		if h.Typeflag == tar.TypeLink && !tarfile.IsSparse(h) {
			s.scan.link = cleanName(h.Linkname)
		}
		s.blocked = ErrNotRegularFile.New(nil, "%s is a %s", PackageFile, kind)
		return nil
	}
	return s.useFile(h, r)
}

// useFile uses the content of an entry as the file package.yaml.
func (s *tarScanner) useFile(h *tar.Header, r io.Reader) error {
	if h.Size > s.limits.Package {
		return ErrPackageTooLarge.New(
			nil, "%s has %d bytes, at most %d are allowed (--max-package-size)", PackageFile, h.Size, s.limits.Package,
		)
	}
	in := &ctxio.Recorder{R: r}
	err := s.use(h.Size, in)
	if in.Err != nil {
		return TarError(in.Err, s.counter.Entries, true)
	}
	s.scan.found = true
	return err
}

// lookalike rejects other spellings of package.yaml in the root, which some tools would read
// as the file, and records files with that name elsewhere.
func (s *tarScanner) lookalike(h *tar.Header) error {
	base := path.Base(h.Name)
	if !strings.EqualFold(base, PackageFile) && !strings.EqualFold(base, "package.yml") {
		return nil
	}
	if path.Join("/", h.Name) == "/"+PackageFile {
		if s.scan.found || s.blocked != nil {
			return ErrDuplicateEntry.New(nil, "the layer contains %s a second time, as %q", PackageFile, text.Clip(h.Name))
		}
		s.blocked = ErrNoPackageYAML.New(nil, "the layer contains %s only under the name %q", PackageFile, text.Clip(h.Name))
		return nil
	}
	const enough = 3
	if len(s.scan.aside) < enough {
		s.scan.aside = append(s.scan.aside, text.Clip(h.Name))
	}
	return nil
}

// TarError returns the error for a tar that cannot be read after a number of entries:
// ErrArchiveLimit for an extended header or a sparse map of more than 1 MiB, ErrNotATar if
// isTar is false, and ErrBrokenLayer otherwise. IsTar reports whether the content begins with
// a tar header. It returns an error with a code unchanged.
func TarError(err error, entries int, isTar bool) error {
	switch {
	case errcode.Known(err):
		return err
	case errors.Is(err, tar.ErrFieldTooLong), strings.Contains(err.Error(), "sparse map too long"):
		return ErrArchiveLimit.New(nil, "an extended header after entry %d of the tar has more than 1 MiB", entries).
			WithDo("Build the package again without extended headers of that length.")
	case !isTar:
		return ErrNotATar.New(nil, "the layer is not a tar")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return ErrBrokenLayer.New(nil, "the tar ends within entry %d", entries+1)
	}
	return ErrBrokenLayer.New(err, "the tar cannot be read after entry %d", entries)
}

// rootName returns the name of an entry in the root, and "" for any other entry. The
// name may begin with "./" or "/".
func rootName(name string) string {
	rest, dotted := strings.CutPrefix(name, "./")
	if !dotted {
		rest = strings.TrimPrefix(name, "/")
	}
	if strings.Contains(rest, "/") {
		return ""
	}
	return rest
}

// onlyZeros reports whether all bytes after the end of a tar are zeros. Writers pad with
// zeros; other bytes are content that other readers could find.
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
