package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	ociarchive "github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// Add adds a package to the cache: a .xpkg file, an archive in the format of docker save,
// either of them optionally compressed with gzip, or the folder of an OCI layout. The
// names refer to it from then on; each is a plain name or the full reference of a
// package. Without names, it gets the name of the file without its extension. An existing
// name is moved.
//
// All of the package is read and checked before anything is stored. The cache stores the
// content that an install needs and keeps it until [Cache.Prune] is called with the
// option to remove named packages.
//
// A named pipe is refused; see [Cache.AddArtifact].
func (c *Cache) Add(ctx context.Context, path string, names ...string) (Entry, error) {
	if len(names) == 0 {
		names = []string{stem(filepath.Base(filepath.Clean(path)))}
	}
	root, file, err := openFolderOf(path)
	if err != nil {
		return Entry{}, err
	}
	defer root.Close()
	a, err := ociarchive.OpenInWithScratch(ctx, root, file, c.store.Scratch, c.limits)
	if err != nil {
		return Entry{}, err
	}
	defer a.Close()
	return c.AddArtifact(ctx, a, file, names...)
}

// AddArtifact adds a package, as Add does, that was read from the named source. It needs at least
// one name.
func (c *Cache) AddArtifact(ctx context.Context, a oci.Artifact, source string, names ...string) (Entry, error) {
	keys, summary, err := read(ctx, a, c.limits, source, names)
	if err != nil {
		return Entry{}, err
	}
	_, parts, err := c.store.AddPackage(ctx, a, c.limits)
	if err != nil {
		return Entry{}, err
	}
	c.storeSummary(ctx, parts[0], summary)
	if err := c.assignNames(ctx, keys, parts); err != nil {
		return Entry{}, err
	}
	return c.entry(ctx, parts[0])
}

// Check returns the error with which AddArtifact refuses a package or its names, without a cache.
func Check(ctx context.Context, a oci.Artifact, limits oci.Limits, source string, names ...string) error {
	_, _, err := read(ctx, a, limits.WithDefaults(), source, names)
	return err
}

// read returns the canonical names and the summary of a package.
func read(
	ctx context.Context, a oci.Artifact, limits oci.Limits, source string, names []string,
) ([]string, summary, error) {
	keys, err := keysOf(names, a.Root().Digest)
	if err != nil {
		return nil, summary{}, err
	}
	s, err := readSummary(ctx, a, limits, source)
	return keys, s, err
}

// openFolderOf opens the folder of a file. It follows links in the path, because the user
// chose the path.
func openFolderOf(path string) (*os.Root, string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, "", ociarchive.ErrArchiveNotFound.New(err, "cannot open %s", path)
	}
	root, err := os.OpenRoot(filepath.Dir(real))
	if err != nil {
		return nil, "", ociarchive.ErrArchiveNotFound.New(err, "cannot open %s", path)
	}
	return root, filepath.Base(real), nil
}

// keysOf returns the canonical names for content. A reference with a digest is only valid
// for that content.
func keysOf(names []string, root oci.Digest) ([]string, error) {
	var keys []string
	for _, name := range names {
		key, plain, err := canonical(name)
		if err != nil {
			return nil, err
		}
		if !plain {
			ref, err := oci.ParseReference(key, oci.ParseOptions{})
			if err != nil {
				return nil, err
			}
			if !ref.Digest.IsZero() && ref.Digest != root {
				return nil, ErrCacheName.New(nil, "the package has the digest %s and cannot be named %s", root, key)
			}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// assignNames records the names of content in the store.
func (c *Cache) assignNames(ctx context.Context, keys []string, parts []oci.Digest) error {
	return c.store.Exclusive(ctx, func() error {
		var errs []error
		for _, key := range keys {
			r, err := encodeRecord(namesKind, key, nameRecord{recordVersion, key, parts[0], parts, c.now().UTC()})
			if err == nil {
				err = c.store.PutRecord(r)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}
