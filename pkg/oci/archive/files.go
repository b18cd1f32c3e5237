package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// fileSet opens the files of an archive by their clean names.
type fileSet interface {
	open(name string) (io.ReadCloser, int64, error)
}

// folder is a layout in a directory. Links that lead out of it are not followed.
type folder struct{ root *os.Root }

func (f folder) open(name string) (io.ReadCloser, int64, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotAnArchive.New(nil, "%s is not an ordinary file", name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// tarFiles holds the files of a plain tar, which is not unpacked.
type tarFiles struct {
	file    io.ReaderAt
	entries map[string]tarEntry
}

// tarEntry is a file in the tar, or a link to another entry.
type tarEntry struct {
	offset, size int64
	link         string
}

// indexTar records the offsets of the entries of a tar. It rejects duplicate names,
// because readers disagree about which entry applies.
func indexTar(f io.ReadSeeker, limits oci.Limits) (*tarFiles, error) {
	at, ok := f.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("an archive must be a file")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot read the archive")
	}
	files := &tarFiles{file: at, entries: map[string]tarEntry{}}
	tr := tar.NewReader(f)
	var counter tarfile.Counter
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, notAnArchive(oci.TarError(err, counter.Entries, isTar(at)))
		}
		counter.Add(h)
		if err := oci.CheckTar(counter.Entries, counter.Headers, limits); err != nil {
			return nil, err
		}
		offset, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, ErrArchiveNotFound.New(err, "cannot read the archive")
		}
		if err := files.add(h, offset); err != nil {
			return nil, err
		}
	}
}

// isTar reports whether a file begins with a tar header.
func isTar(f io.ReaderAt) bool {
	block := make([]byte, 512)
	_, err := f.ReadAt(block, 0)
	return err == nil && tarfile.IsHeader(block)
}

func notAnArchive(err error) error {
	if errors.Is(err, oci.ErrNotATar) {
		return ErrNotAnArchive.New(nil, "the file is not a tar")
	}
	return err
}

func (t *tarFiles) add(h *tar.Header, offset int64) error {
	entry := tarEntry{offset: offset, size: h.Size}
	switch h.Typeflag {
	case tar.TypeReg:
		if tarfile.Irregular(h) != "" {
			return oci.ErrNotRegularFile.New(nil, "the entry %q of the archive is a sparse file", text.Clip(h.Name))
		}
	case tar.TypeSymlink:
		entry = tarEntry{link: path.Join(path.Dir(h.Name), h.Linkname)}
	case tar.TypeLink:
		entry = tarEntry{link: path.Clean(h.Linkname)}
	default:
		return nil
	}
	name := path.Clean(h.Name)
	if _, twice := t.entries[name]; twice {
		return oci.ErrDuplicateEntry.New(nil, "the archive contains %q twice", text.Clip(name))
	}
	t.entries[name] = entry
	return nil
}

// open opens a file. Older Docker archives store a repeated layer as a link, so open
// follows one link within the archive.
func (t *tarFiles) open(name string) (io.ReadCloser, int64, error) {
	entry, ok := t.entries[path.Clean(name)]
	if ok && entry.link != "" {
		entry, ok = t.entries[entry.link]
	}
	if !ok || entry.link != "" {
		return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(t.file, entry.offset, entry.size)), entry.size, nil
}
