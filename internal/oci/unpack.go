package oci

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrUnsafeImage is the failure of an image that holds what no program needs and
// an attacker would want.
var ErrUnsafeImage = failure.Register(failure.Code{
	Name: "UnsafeImage", Class: failure.Invalid,
	Cause: "A layer of the image has an entry that leads out of the image's root, a device, a sparse file, or a name that no file can have.",
	Fix:   "Do not run the image; if it is yours, build it again with a common tool.",
})

// ErrImageTooLarge is the failure of an image that is larger, or has more
// entries, than a program may have.
var ErrImageTooLarge = failure.Register(failure.Code{
	Name: "ImageTooLarge", Class: failure.Limit,
	Cause: "The image of a program has more bytes, files, or deeper folders than the limits allow, or is packed suspiciously well.",
	Fix:   "Check that the image is that of the package's program, and build a smaller one.",
})

// ErrImageWrite is the failure of writing an unpacked image.
var ErrImageWrite = failure.Register(failure.Code{
	Name: "ImageWrite", Class: failure.Unavailable,
	Cause: "The files of an image cannot be written: the disk is full, read-only or broken.",
	Fix:   "Free some space in the data directory. Nothing half-written is used.",
})

// UnpackLimits bound the image of a program. Zero means the default.
type UnpackLimits struct {
	// Download bounds the layers as they are published, in bytes.
	Download int64
	// Bytes bounds the tars of all layers together, in bytes.
	Bytes int64
	// Ratio bounds how many bytes a layer unpacks to for each of its own, once it
	// has given 8 MiB.
	Ratio int64
	// Entries bounds the entries of all layers together.
	Entries int
	// Headers bounds the names and extended headers of all entries, in bytes.
	Headers int64
	// Depth bounds how many folders lie above a file.
	Depth int
}

// WithDefaults gives l with the default in the place of every limit that is zero.
// The largest known images of providers have 250 MiB of layers and 1.2 GiB of
// files; those of Python functions have 30,000 entries.
func (l UnpackLimits) WithDefaults() UnpackLimits {
	orInt64(&l.Download, 2<<30)
	orInt64(&l.Bytes, 8<<30)
	orInt64(&l.Ratio, 200)
	orInt(&l.Entries, 500_000)
	orInt64(&l.Headers, 128<<20)
	orInt(&l.Depth, 64)
	return l
}

// Unpacked says what an image unpacked to.
type Unpacked struct {
	// Entries and Bytes count what the tars of all layers held, also what a later
	// layer removed.
	Entries int
	Bytes   int64
}

// Unpack writes the files of an image, whose layers are in the store, into an
// empty folder (OCI image specification, "Applying Changesets"). Each layer is
// verified as a whole before the first entry of it is read.
//
// Nothing is written outside of the folder, and nothing in it leads out: symbolic
// links are rewritten so that they stay within, with an absolute one meaning the
// image's root. Files belong to the user of this process; they keep their
// permissions, without setuid and setgid, and their times, and lose owners and
// extended attributes. Entries under /dev are left out, since a program gets its
// devices from whoever runs it.
//
// It fails with UnsafeImage, ImageTooLarge, BrokenLayer or ImageWrite, and with
// BlobNotFound or DigestMismatch when a layer is not in the store any more. What
// is in the folder then is of no use.
func Unpack(ctx context.Context, store *Store, image ProgramImage, folder string, limits UnpackLimits) (Unpacked, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Unpacked{}, ErrImageWrite.New(err, "cannot open the folder %s", folder)
	}
	defer root.Close() //nolint:errcheck // Nothing is written through it.
	u := &unpacker{root: root, limits: limits.WithDefaults()}
	defer u.leaveParent()
	for _, layer := range image.Layers {
		if err := u.layer(ctx, store, layer); err != nil {
			return u.done, fmt.Errorf("cannot unpack layer %s: %w", layer.Digest.Short(), err)
		}
	}
	return u.done, nil
}

// unpacker applies one layer after the other.
type unpacker struct {
	root    *os.Root
	limits  UnpackLimits
	done    Unpacked
	headers int64
	// looked counts the entries that whiteouts looked at.
	looked int
	// written has the places that the present layer has written, and the folders
	// above them, so that its whiteouts only remove what lower layers brought.
	written map[string]bool
	// parent is the folder of the last file, which is often that of the next one: its
	// name in the tar, its place, and the open folder itself.
	parent struct {
		name, at string
		dir      *os.Root
	}
}

func (u *unpacker) layer(ctx context.Context, store *Store, layer Descriptor) (err error) {
	blob, err := store.Open(ctx, layer.Digest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	// The limits of packages do not fit programs, whose own are enforced below.
	plain, err := unpackLayer(blob, layer, Limits{Unpacked: 1 << 62, Ratio: 1 << 30})
	if err != nil {
		return err
	}
	defer plain.Close() //nolint:errcheck // It was only read.
	return u.tar(&budgetReader{r: contextReader{ctx, plain}, u: u, most: max(freeOutput, layer.Size*u.limits.Ratio)})
}

func (u *unpacker) tar(r io.Reader) error {
	u.written = map[string]bool{}
	u.leaveParent()
	tr, entries := tar.NewReader(r), 0
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return (&tarScanner{entries: entries}).tarError(err)
		}
		entries++
		if err := u.count(header); err != nil {
			return err
		}
		if err := u.entry(header, tr); err != nil {
			return err
		}
	}
	// Padding, and what other readers do not look at either.
	_, err := io.Copy(io.Discard, r)
	return err
}

// count enforces the limits on entries and on the length of headers.
func (u *unpacker) count(h *tar.Header) error {
	u.done.Entries++
	if u.done.Entries > u.limits.Entries {
		return ErrImageTooLarge.New(nil, "the image has more than %d entries", u.limits.Entries)
	}
	u.headers += int64(len(h.Name) + len(h.Linkname))
	for k, v := range h.PAXRecords {
		u.headers += int64(len(k) + len(v))
	}
	if u.headers > u.limits.Headers {
		return ErrImageTooLarge.New(nil, "the headers of the image have more than %d bytes", u.limits.Headers)
	}
	return nil
}

// budgetReader bounds what one layer, and what all of them together, unpack to.
type budgetReader struct {
	r    io.Reader
	u    *unpacker
	read int64
	most int64
}

func (b *budgetReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.read += int64(n)
	b.u.done.Bytes += int64(n)
	switch {
	case b.u.done.Bytes > b.u.limits.Bytes:
		return 0, ErrImageTooLarge.New(nil, "the image unpacks to more than %d bytes", b.u.limits.Bytes)
	case b.read > b.most:
		return 0, ErrImageTooLarge.New(nil, "the layer unpacks to more than %d times its size", b.u.limits.Ratio)
	}
	return n, err
}
