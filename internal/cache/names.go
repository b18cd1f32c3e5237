package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	ociarchive "github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// plainName is a name without a registry. It is also the name of a file, so it must not
// contain a path separator.
var plainName = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,198}[A-Za-z0-9])?$`)

// canonical returns the canonical spelling of a name, and whether it is a plain name. All
// other names are references with a registry.
func canonical(name string) (key string, plain bool, err error) {
	if plainName().MatchString(name) {
		return name, true, nil
	}
	ref, err := oci.ParseReference(name, oci.ParseOptions{})
	if err != nil {
		return "", false, ErrCacheName.New(err, "%.120q is not a valid name for the package cache", name)
	}
	return ref.String(), false, nil
}

// Named returns the digest of the content with a name: a name from [Cache.Add], or else
// the name of a sideloaded file, with or without its extension (packages guide,
// "Pre-Populating the Package Cache"). A new or changed file is read, verified and copied
// into the store first. It fails with NotInCache, or as reading the file does.
func (c *Cache) Named(ctx context.Context, name string) (oci.Digest, error) {
	key, plain, err := canonical(name)
	if err != nil {
		return oci.Digest{}, err
	}
	added, err := c.added(ctx, key)
	if err == nil || !errors.Is(err, oci.ErrBlobNotFound) {
		return added, err
	}
	if !plain {
		return c.byReference(ctx, key)
	}
	d, err := c.sideloaded(ctx, key)
	if !errors.Is(err, ociarchive.ErrArchiveNotFound) {
		return d, err
	}
	return oci.Digest{},
		c.notFound(ctx, key, fmt.Sprintf("there is no file %s and no folder %s in it", strings.Join(filesOf(key), ", "), key))
}

// added returns the content with a name from Add. It fails with ErrBlobNotFound if there
// is no such name, and with ErrNotInCache if its content is damaged.
func (c *Cache) added(ctx context.Context, key string) (oci.Digest, error) {
	r, err := c.store.GetRecord(ctx, namesKind, key)
	if err != nil {
		return oci.Digest{}, err
	}
	n, err := decodeName(r)
	if err != nil {
		return oci.Digest{}, err
	}
	if !c.has(n.Parts) {
		return oci.Digest{}, ErrNotInCache.New(
			nil, "%q was added to the package cache %s as %s, but its content is incomplete", key, c.dir, n.Digest,
		).
			WithDo("Add it again with `xpkg cache add %s`.", wording.ShellWord(key+".xpkg")+" --as "+wording.ShellWord(key))
	}
	return n.Digest, nil
}

// byReference returns the content of a reference with a digest, which need not be named.
func (c *Cache) byReference(ctx context.Context, key string) (oci.Digest, error) {
	ref, err := oci.ParseReference(key, oci.ParseOptions{})
	if err == nil && c.store.Has(ref.Digest) {
		return ref.Digest, nil
	}
	return oci.Digest{}, c.notFound(ctx, key, "nothing was added to it under that reference")
}

// has reports whether all parts are in the store.
func (c *Cache) has(parts []oci.Digest) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(d oci.Digest) bool { return !c.store.Has(d) })
}

// notFound returns an error with the places where a name was looked up and similar names.
func (c *Cache) notFound(ctx context.Context, key, why string) error {
	failure := ErrNotInCache.New(errors.New(why), "%q is not in the package cache %s", key, c.dir).
		WithDo(
			"Add the package of a file such as package.xpkg with `xpkg cache add package.xpkg --as %s`.", wording.ShellWord(key),
		)
	if alike := c.alike(ctx, key); len(alike) > 0 {
		return failure.WithDo("Did you mean %s? %s", strings.Join(alike, " or "), failure.Do)
	}
	return failure
}

// alike returns names with a similar spelling, most similar first.
func (c *Cache) alike(ctx context.Context, key string) []string {
	var all []string
	if names, err := c.names(ctx); err == nil {
		for _, n := range names {
			all = append(all, n.Name)
		}
	}
	files, _ := c.sideloadedNames()
	all = append(all, files...)
	return spelling.AlikeReferences(key, all)
}
