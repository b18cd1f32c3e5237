package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Add puts a package into the cache: a .xpkg file, an archive as docker save
// writes it, either of them compressed with gzip or not, or the folder of an OCI
// layout. It is known by the names from then on, each of them a plain name or the
// full reference of a package; without any, by the name of the file without its
// ending. A name that meant something else means this from then on.
//
// All of the package is read and checked before anything is kept. What is kept is
// what is needed to install it, and stays until [Cache.Prune] is told to remove
// named packages.
func (c *Cache) Add(ctx context.Context, path string, names ...string) (Entry, error) {
	if len(names) == 0 {
		names = []string{stem(filepath.Base(filepath.Clean(path)))}
	}
	root, file, err := openFolderOf(path)
	if err != nil {
		return Entry{}, err
	}
	defer root.Close() //nolint:errcheck // It was only read.
	a, err := c.store.OpenArchive(ctx, root, file, c.limits)
	if err != nil {
		return Entry{}, err
	}
	defer a.Close() //nolint:errcheck // It was only read.
	keys, err := keysOf(names, a.Root().Digest)
	if err != nil {
		return Entry{}, err
	}
	about, err := readAbout(ctx, a, c.limits, file)
	if err != nil {
		return Entry{}, err
	}
	_, parts, err := c.store.AddPackage(ctx, a, c.limits)
	if err != nil {
		return Entry{}, err
	}
	c.keepAbout(ctx, parts[0], about)
	if err := c.giveNames(ctx, keys, parts); err != nil {
		return Entry{}, err
	}
	return c.entry(ctx, parts[0])
}

// openFolderOf opens the folder that a file is in, after links in the path, which
// is that of the user.
func openFolderOf(path string) (*os.Root, string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, "", oci.ErrArchiveNotFound.New(err, "cannot open %s", path)
	}
	root, err := os.OpenRoot(filepath.Dir(real))
	if err != nil {
		return nil, "", oci.ErrArchiveNotFound.New(err, "cannot open %s", path)
	}
	return root, filepath.Base(real), nil
}

// keysOf gives the canonical names for content. A reference with a digest names
// that content only.
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
				return nil, ErrCacheName.New(nil, "the package has digest %s and cannot be named %s", root, key)
			}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// giveNames writes down the names of content that is in the store.
func (c *Cache) giveNames(ctx context.Context, keys []string, parts []oci.Digest) error {
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
