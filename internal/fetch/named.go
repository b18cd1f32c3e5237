package fetch

import (
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Reader reads packages. A Source implements it.
type Reader interface {
	Named(ctx context.Context, name string) (oci.Digest, error)
	Read(ctx context.Context, o Origin, d oci.Digest, pull bool) (*xpkg.Package, error)
}

// Read returns the package with a digest that an image reference selected. With the pull policy Never, content that
// was evicted from the store can still exist as a file with that name.
//
// A package of the first generation that states another version than the tag of the image is refused.
func Read(ctx context.Context, r Reader, o Origin, d oci.Digest, image string, pull bool) (*xpkg.Package, error) {
	pkg, err := read(ctx, r, o, d, image, pull)
	if err != nil {
		return nil, err
	}
	ref, err := oci.ParseReference(image, oci.ParseOptions{})
	if err != nil {
		return pkg, nil // The name of a file in the package cache.
	}
	if err := firstgen.CheckConvertedTag(pkg.Meta, ref.Tag); err != nil {
		return nil, err
	}
	return pkg, nil
}

func read(ctx context.Context, r Reader, o Origin, d oci.Digest, image string, pull bool) (*xpkg.Package, error) {
	pkg, err := r.Read(ctx, o, d, pull)
	if pull || !errors.Is(err, ErrNotCached) {
		return pkg, err
	}
	named, nerr := r.Named(ctx, image)
	switch {
	case nerr != nil:
		return nil, err
	case named != d:
		return nil,
			ErrNotCached.New(nil, "%s now refers to different content; the installed %s is not in the package cache", image, d).
				WithDo("Restore the installed content, or add the other content under another name and set spec.package to it.")
	}
	return r.Read(ctx, o, d, false)
}
