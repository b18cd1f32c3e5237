package cache

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/spelling"
)

// plainName is a name without a registry. It is the name of a file, too, so
// nothing in it can lead to another folder.
var plainName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,198}[A-Za-z0-9])?$`)

// canonical gives the one spelling of a name, and whether it is a plain one. All
// others are references with a registry.
func canonical(name string) (key string, plain bool, err error) {
	if plainName.MatchString(name) {
		return name, true, nil
	}
	ref, err := oci.ParseReference(name, oci.ParseOptions{})
	if err != nil {
		return "", false, ErrCacheName.New(err, "%.120q is no name for the package cache", name)
	}
	return ref.String(), false, nil
}

// Named gives the digest of the content with a name: a name that was given with
// [Cache.Add], or else the name of what lies in the folder of the cache, with or
// without its ending (packages guide, "Pre-Populating the Package Cache"). That is
// read, verified and copied into the store first, each time it has changed; what
// appears in the folder is found at the next look. It fails with NotInCache, or as
// reading the file does.
func (c *Cache) Named(ctx context.Context, name string) (oci.Digest, error) {
	key, plain, err := canonical(name)
	if err != nil {
		return oci.Digest{}, err
	}
	added, err := c.added(ctx, key)
	if err == nil || !oci.ErrBlobNotFound.Is(err) {
		return added, err
	}
	if !plain {
		return c.byReference(ctx, key)
	}
	d, err := c.dropped(ctx, key)
	if !oci.ErrArchiveNotFound.Is(err) {
		return d, err
	}
	return oci.Digest{}, c.notFound(ctx, key, fmt.Sprintf("there is no file %s and no folder %s in it", strings.Join(filesOf(key), ", "), key))
}

// added gives the content that a name was given to. It fails with BlobNotFound
// when there is no such name, and with NotInCache when its content was damaged.
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
		return oci.Digest{}, ErrNotInCache.New(nil, "%q was added to the package cache %s as %s, and not all of it is there any more", key, c.dir, n.Digest).
			WithDo("Add it again with `xpkg cache add FILE --as %s`.", key)
	}
	return n.Digest, nil
}

// byReference finds the content of a reference with a digest, which needs no name.
func (c *Cache) byReference(ctx context.Context, key string) (oci.Digest, error) {
	ref, err := oci.ParseReference(key, oci.ParseOptions{})
	if err == nil && c.store.Has(ref.Digest) {
		return ref.Digest, nil
	}
	return oci.Digest{}, c.notFound(ctx, key, "nothing was added to it under that reference")
}

// has says whether all of some content is in the store.
func (c *Cache) has(parts []oci.Digest) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(d oci.Digest) bool { return !c.store.Has(d) })
}

// notFound says where a name was sought, and what is there that is spelled alike.
func (c *Cache) notFound(ctx context.Context, key, why string) error {
	failure := ErrNotInCache.New(errors.New(why), "%q is not in the package cache %s", key, c.dir)
	if alike := c.alike(ctx, key); len(alike) > 0 {
		return failure.WithDo("Did you mean %s? %s", strings.Join(alike, " or "), ErrNotInCache.Fix)
	}
	return failure
}

// alike lists names that somebody may have meant, the likeliest first.
func (c *Cache) alike(ctx context.Context, key string) []string {
	var all []string
	if names, err := c.names(ctx); err == nil {
		for _, n := range names {
			all = append(all, n.Name)
		}
	}
	files, _ := c.droppedNames()
	all = append(all, files...)
	return spelling.Alike(key, all)
}
