package content

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Reader reads packages; a Source is one.
type Reader interface {
	Named(ctx context.Context, name string) (oci.Digest, error)
	Read(ctx context.Context, o Origin, d oci.Digest, pull bool) (*format.Package, error)
}

// Read gives the package with a digest, for somebody who asked for it as image.
// What is never pulled and not in the cache any more may still lie in it as a
// file, under that name.
func Read(ctx context.Context, r Reader, o Origin, d oci.Digest, image string, pull bool) (*format.Package, error) {
	pkg, err := r.Read(ctx, o, d, pull)
	if pull || !ErrNotCached.Is(err) {
		return pkg, err
	}
	named, nerr := r.Named(ctx, image)
	switch {
	case nerr != nil:
		return nil, err
	case named != d:
		return nil, ErrNotCached.New(nil, "%s is other content by now, and %s, which was installed, is not in the package cache", image, d).
			WithDo("Bring back what was installed; or give the other content another name, and let spec.package name it.")
	}
	return r.Read(ctx, o, d, false)
}
