package unpack

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// ErrUnsafeImage is the code for an image with entries that an attacker could use and
// no runtime requires.
var ErrUnsafeImage = errcode.Code{
	Name: "UnsafeImage", Class: errcode.Invalid,
	Cause: "A layer of the image has an entry that leads out of the image's root, a device, a sparse file, or an invalid file name.",
	Fix:   "Do not run the image; if you own it, rebuild it with a common tool.",
}

// ErrImageTooLarge is the code for an image that exceeds the limits of runtime images.
var ErrImageTooLarge = errcode.Code{
	Name: "ImageTooLarge", Class: errcode.Limit,
	Cause: "A runtime image exceeds the limits for bytes, files, depth of folders or compression ratio.",
	Fix:   "Check that the image is the runtime image of the package, and build a smaller one.",
}

// ErrImageWrite is the code for writing an unpacked image.
var ErrImageWrite = errcode.Code{
	Name: "ImageWrite", Class: errcode.Unavailable,
	Cause: "The files of an image cannot be written: the disk is full, read-only or broken.",
	Fix:   "Free some space in the data directory. Incomplete files are not used.",
}

// Limits bounds a runtime image. Zero means the default.
type Limits struct {
	// Download bounds the packed size of all layers, in bytes.
	Download int64
	// Bytes bounds the tars of all layers together, in bytes.
	Bytes int64
	// Ratio bounds the ratio of the unpacked to the packed size of a layer, beyond the
	// first 8 MiB.
	Ratio int64
	// Entries bounds the entries of all layers together.
	Entries int
	// Headers bounds the names and extended headers of all entries, in bytes.
	Headers int64
	// Depth bounds the number of folders above a file.
	Depth int
}

// withDefaults returns l with the default for every limit that is zero. The largest known
// images of providers have 250 MiB of layers and 1.2 GiB of files; images of Python
// functions have 30,000 entries.
func (l Limits) withDefaults() Limits {
	l.Download = cmp.Or(l.Download, 2<<30)
	l.Bytes = cmp.Or(l.Bytes, 8<<30)
	l.Ratio = cmp.Or(l.Ratio, 200)
	l.Entries = cmp.Or(l.Entries, 500_000)
	l.Headers = cmp.Or(l.Headers, 128<<20)
	l.Depth = cmp.Or(l.Depth, 64)
	return l
}

// Result is the size of an unpacked image.
type Result struct {
	// Entries and Bytes count the tars of all layers, including entries that a later
	// layer removed.
	Entries int
	Bytes   int64
}

// RootFS writes the files of an image, whose layers are in the store, to an empty
// directory (OCI image specification, "Applying Changesets"). It verifies each layer as a
// whole before it reads the first entry.
//
// It writes no file outside of the directory. It rewrites symbolic links so that they
// stay inside; an absolute link is relative to the root of the image. Files belong to the
// user of this process. They keep their times and their permissions without setuid and
// setgid, and lose owners and extended attributes. Entries below /dev are skipped,
// because the runtime environment provides the devices.
//
// It fails with ErrUnsafeImage, ErrImageTooLarge, ErrBrokenLayer or ErrImageWrite, and
// with ErrBlobNotFound or ErrDigestMismatch if a layer is no longer in the store. After
// an error the content of the directory is incomplete, and the caller deletes it.
func RootFS(ctx context.Context, store *store.Store, image RuntimeImage, folder string, limits Limits) (Result, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Result{}, ErrImageWrite.New(err, "cannot open the folder %s", folder)
	}
	defer root.Close()
	u := &unpacker{root: root, limits: limits.withDefaults()}
	defer u.leaveParent()
	for _, layer := range image.Layers {
		if err := u.layer(ctx, store, layer); err != nil {
			return u.done, fmt.Errorf("cannot unpack layer %s: %w", layer.Digest.Short(), err)
		}
	}
	return u.done, nil
}

// unpacker applies the layers in order.
type unpacker struct {
	root    *os.Root
	limits  Limits
	done    Result
	counter tarfile.Counter
	// looked counts the entries that whiteouts visited.
	looked int
	// written contains the paths that the current layer has written, and the directories
	// above them, so that its whiteouts remove only files of lower layers.
	written map[string]bool
	// parent is the directory of the last file, which is often the directory of the next
	// one: its name in the tar, its path, and the open directory.
	parent struct {
		name, at string
		dir      *os.Root
	}
}

func (u *unpacker) layer(ctx context.Context, store *store.Store, layer oci.Descriptor) (err error) {
	blob, err := store.Open(ctx, layer.Digest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	// Runtime images have their own limits, see below.
	plain, err := oci.OpenLayer(blob, layer, oci.Limits{Unpacked: 1 << 62, Ratio: 1 << 30})
	if err != nil {
		return err
	}
	defer plain.Close()
	return u.tar(&budgetReader{r: ctxio.Reader(ctx, plain), u: u, most: max(ratioFloor, layer.Size*u.limits.Ratio)})
}

func (u *unpacker) tar(r io.Reader) error {
	u.written = map[string]bool{}
	u.leaveParent()
	sniffer := &tarfile.Sniffer{R: r}
	tr, entries := tar.NewReader(sniffer), 0
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if errors.Is(err, tar.ErrFieldTooLong) {
				return ErrImageTooLarge.New(nil, "an extended header of the image has more than 1 MiB")
			}
			return oci.TarError(err, entries, sniffer.IsTar())
		}
		entries++
		if err := u.count(header); err != nil {
			return err
		}
		if err := u.entry(header, tr); err != nil {
			return err
		}
	}
	// Skip the padding and all bytes that other readers skip too.
	_, err := io.Copy(io.Discard, r)
	return err
}

// count enforces the limits on entries and on the length of headers.
func (u *unpacker) count(h *tar.Header) error {
	u.counter.Add(h)
	u.done.Entries = u.counter.Entries
	if u.counter.Entries > u.limits.Entries {
		return ErrImageTooLarge.New(nil, "the image has more than %d entries", u.limits.Entries)
	}
	if u.counter.Headers > u.limits.Headers {
		return ErrImageTooLarge.New(nil, "the headers of the image have more than %d bytes", u.limits.Headers)
	}
	return nil
}

// ratioFloor is the number of bytes that a layer may unpack to before the limit on
// the ratio applies.
const ratioFloor = 8 << 20

// budgetReader bounds the unpacked size of one layer, and of all layers together.
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
