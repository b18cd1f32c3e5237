package bundle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// SaveOptions configures a bundle.
type SaveOptions struct {
	// Platforms limits the images in indexes; empty means all.
	Platforms []oci.Platform
	// Lock is the lock file of the packages, and Configs are ImageConfigs for clusters in YAML; each can be empty.
	Lock, Configs []byte
	// Since is a bundle whose blobs are omitted, and SinceName its name.
	Since     *Bundle
	SinceName string
	// Note, if set, receives notes for the user.
	Note func(text string)
	// Progress, if set, is called with the bytes that are written, or that were found.
	Progress func(done, total int64)
	// Before is called before each change of the disk; its error fails the change. It is a hook for tests.
	Before func(change string) error
}

func (o SaveOptions) note(text string) {
	if o.Note != nil {
		o.Note(text)
	}
}

// Saved describes a bundle that was written.
type Saved struct {
	// Entries is the number of artifacts, and Blobs that of blobs.
	Entries, Blobs int
	// Size is the size of the file, and Omitted that of the blobs that it omits, in bytes.
	Size, Omitted int64
	// Fetched is the number of bytes that were read from registries: the others were in an unfinished file.
	Fetched int64
}

// atOnce is the number of items that are read, and of blobs that are transferred, at the same time.
const atOnce = 4

// PartialSuffix is the suffix of the name of an unfinished bundle.
const PartialSuffix = ".partial"

// Save writes a bundle of items. It writes an unfinished file beside the bundle, and continues with the parts of it
// that are not intact. It verifies everything that it reads, and keeps no blob in memory. It fails with
// [signature.ErrUnknown] if a registry does not tell what belongs to an item.
func Save(ctx context.Context, file string, items []Item, o SaveOptions) (Saved, error) {
	items = inOrder(items)
	parts := make([]*part, len(items))
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range items {
		group.Go(func() (err error) {
			parts[i], err = partOf(running, items[i], o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Saved{}, err
	}
	m, err := merge(parts)
	if err != nil {
		return Saved{}, err
	}
	sections, c, err := m.sections(ctx, o)
	if err != nil {
		return Saved{}, err
	}
	w := &writer{sections: sections, options: o, size: place(sections) + trailing}
	out := Saved{Entries: len(m.entries), Blobs: len(c.Blobs), Size: w.size}
	for _, b := range c.Omitted {
		out.Omitted += b.Size
	}
	err = w.write(ctx, file)
	out.Fetched = w.fetched.Load()
	return out, writeError(file, err)
}

// sections returns the files of the bundle.
func (m *merged) sections(ctx context.Context, o SaveOptions) ([]section, contents, error) {
	c := contents{}
	for _, p := range o.Platforms {
		c.Platforms = append(c.Platforms, p.String())
	}
	blobs := m.blobs
	if o.Since != nil {
		c.Since = &base{o.SinceName, o.Since.digest}
		there, err := o.Since.locations(ctx)
		if err != nil {
			return nil, c, err
		}
		blobs = nil
		for _, s := range m.blobs {
			if at, ok := there[s.Digest]; ok {
				c.Omitted = append(c.Omitted, omitted{s.blob, at})
				continue
			}
			blobs = append(blobs, s)
		}
	}
	var body []section
	var layers []oci.Descriptor
	for _, l := range []struct {
		mediaType oci.MediaType
		data      []byte
	}{{mediaTypeLock, o.Lock}, {mediaTypeConfigs, o.Configs}} {
		if len(l.data) > 0 {
			body = append(body, newSection("", l.data))
			layers = append(layers, oci.DescriptorOf(l.mediaType, l.data))
		}
	}
	body = append(append(body, m.manifests...), blobs...)
	for _, s := range body {
		c.Blobs = append(c.Blobs, s.blob)
	}
	front, err := head(c, layers, m.entries)
	return append(front, body...), c, err
}

// writer writes the sections of a bundle.
type writer struct {
	sections      []section
	options       SaveOptions
	size          int64
	file          *os.File
	done, fetched atomic.Int64
}

// write writes an unfinished file and renames it.
func (w *writer) write(ctx context.Context, file string) (err error) {
	partial := file + PartialSuffix
	lock := flock.New(partial, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(fileutil.PublicMode))
	if isFree, err := lock.TryLock(); err != nil {
		return err
	} else if !isFree {
		return ErrInUse.New(nil, "another process writes %s", partial)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := w.fill(ctx, partial); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // It renames no open file.
		if err := lock.Close(); err != nil {
			return err
		}
	}
	if err := w.before("rename"); err != nil {
		return err
	}
	if err := os.Rename(partial, file); err != nil {
		return err
	}
	// A directory without read permission cannot be synced.
	if err := fileutil.Sync(filepath.Dir(file)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// fill completes an unfinished file.
func (w *writer) fill(ctx context.Context, partial string) (err error) {
	if w.file, err = os.OpenFile(partial, os.O_RDWR, 0); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.file.Close()) }()
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, s := range w.sections {
		group.Go(func() error { return w.section(running, s) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := w.writeAt("end", make([]byte, trailing), w.size-trailing); err != nil {
		return err
	}
	if err := w.file.Truncate(w.size); err != nil {
		return err
	}
	if err := w.before("sync"); err != nil {
		return err
	}
	return w.file.Sync()
}

func (w *writer) before(change string) error {
	if w.options.Before == nil {
		return nil
	}
	return w.options.Before(change)
}

// writeAt writes at an offset.
func (w *writer) writeAt(what string, data []byte, offset int64) error {
	if err := w.before(what); err != nil {
		return err
	}
	_, err := w.file.WriteAt(data, offset)
	return err
}

// section writes a file of the bundle, unless it is intact.
func (w *writer) section(ctx context.Context, s section) (err error) {
	defer func() {
		if err == nil && w.options.Progress != nil {
			w.options.Progress(w.done.Add(s.end()-s.offset+blockSize), w.size)
		}
	}()
	head, err := header(s.name, s.Size)
	if err != nil {
		return err
	}
	if w.isIntact(ctx, s, head) {
		return nil
	}
	if err := w.writeAt("header", head, s.offset-blockSize); err != nil {
		return err
	}
	r, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	n, err := io.Copy(&sectionWriter{w, s.offset}, oci.VerifyReader(fileutil.Reader(ctx, r), s.descriptor()))
	w.fetched.Add(n)
	if err != nil {
		return err
	}
	return w.writeAt("padding", s.padding(), s.offset+s.Size)
}

// isIntact reports whether the unfinished file contains a section.
func (w *writer) isIntact(ctx context.Context, s section, head []byte) bool {
	there := make([]byte, blockSize)
	if _, err := w.file.ReadAt(there, s.offset-blockSize); err != nil || !bytes.Equal(there, head) {
		return false
	}
	r := oci.VerifyReader(fileutil.Reader(ctx, io.NewSectionReader(w.file, s.offset, s.Size)), s.descriptor())
	if _, err := io.Copy(io.Discard, r); err != nil {
		return false
	}
	rest := s.padding()
	_, err := w.file.ReadAt(rest, s.offset+s.Size)
	return (err == nil || len(rest) == 0) && bytes.Equal(rest, s.padding())
}

// sectionWriter writes the content of a section.
type sectionWriter struct {
	w      *writer
	offset int64
}

// Write implements [io.Writer].
func (s *sectionWriter) Write(p []byte) (int, error) {
	if err := s.w.writeAt("content", p, s.offset); err != nil {
		return 0, err
	}
	s.offset += int64(len(p))
	return len(p), nil
}

// writeError adds a code to an error of the disk.
func writeError(file string, err error) error {
	if err == nil || errcode.Known(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	err = fileutil.WithoutPath(err)
	failed := archive.ErrCannotWrite.New(err, "cannot write %s", file)
	if advice := fileutil.DirectoryAdvice(err, filepath.Dir(file), ""); advice != "" {
		return failed.WithDo("%s", advice)
	}
	return failed.WithDo("Correct the cause, and run the command again: it continues with %s.", file+PartialSuffix)
}
