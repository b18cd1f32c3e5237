package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	ociarchive "github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// endings are the extensions of sideloaded files, in lookup order.
var endings = []string{".xpkg", ".xpkg.gz", ".tar"}

// layoutIndex is the file that changes with every change of an OCI layout.
const layoutIndex = "index.json"

// imported records a sideloaded file that was copied into the store.
type imported struct {
	info  fs.FileInfo
	parts []oci.Digest
}

// current reports whether the file is unchanged since it was imported.
func (i imported) current(now fs.FileInfo) bool {
	return i.info != nil && os.SameFile(i.info, now) && i.info.Size() == now.Size() &&
		i.info.ModTime().Equal(now.ModTime())
}

// stem returns a file name without its extension.
func stem(file string) string {
	for _, e := range slices.Backward(endings) {
		if s, ok := strings.CutSuffix(file, e); ok {
			return s
		}
	}
	return file
}

// filesOf returns the possible file names for a name.
func filesOf(name string) []string {
	var files []string
	if stem(name) != name {
		files = append(files, name)
	}
	for _, e := range endings {
		files = append(files, name+e)
	}
	return files
}

// sideloaded returns the digest of the file or folder with a plain name in the folder of
// the cache. It fails with ArchiveNotFound if there is none.
func (c *Cache) sideloaded(ctx context.Context, name string) (oci.Digest, error) {
	for _, file := range filesOf(name) {
		info, err := c.root.Stat(file)
		switch {
		case err == nil:
			return c.importFile(ctx, file, info)
		case !errors.Is(err, fs.ErrNotExist):
			return oci.Digest{}, ociarchive.ErrNotAnArchive.New(err, "cannot read %s in the package cache %s", file, c.dir)
		}
	}
	if info, err := c.root.Stat(name); err == nil && info.IsDir() && name != storeDir {
		if info, err = c.root.Stat(path.Join(name, layoutIndex)); err != nil {
			return oci.Digest{},
				ociarchive.ErrNotAnArchive.New(err, "the folder %s of the package cache %s is not an OCI layout", name, c.dir)
		}
		return c.importFile(ctx, name, info)
	}
	return oci.Digest{},
		ociarchive.ErrArchiveNotFound.New(nil, "the package cache %s contains no package named %s", c.dir, name)
}

// importFile copies the content of a file that an install needs into the store, unless it
// is already there.
func (c *Cache) importFile(ctx context.Context, file string, info fs.FileInfo) (oci.Digest, error) {
	select {
	case c.importing <- struct{}{}:
	case <-ctx.Done():
		return oci.Digest{}, ctx.Err()
	}
	defer func() { <-c.importing }()
	if known := c.known(file); known.current(info) && c.has(known.parts) {
		return known.parts[0], nil
	}
	parts, err := c.addFrom(ctx, file)
	if err != nil {
		return oci.Digest{}, fmt.Errorf("cannot use %s in the package cache %s: %w", file, c.dir, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.imported[file] = imported{info, parts}
	return parts[0], nil
}

func (c *Cache) known(file string) imported {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.imported[file]
}

// addFrom copies the content of a file in the folder into the store. The first digest of
// the result is the root.
func (c *Cache) addFrom(ctx context.Context, file string) (_ []oci.Digest, err error) {
	a, err := ociarchive.OpenInWithScratch(ctx, c.root, file, c.store.Scratch, c.limits)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	_, parts, err := c.store.AddPackage(ctx, a, c.limits)
	return parts, err
}

// sideloadedFiles returns the sideloaded files that have a valid name.
func (c *Cache) sideloadedFiles() ([]string, error) {
	f, err := c.root.Open(".")
	if err != nil {
		return nil, store.ErrStoreWrite.New(err, "cannot read the package cache %s", c.dir)
	}
	entries, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, store.ErrStoreWrite.New(err, "cannot read the package cache %s", c.dir)
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if name == storeDir || !plainName().MatchString(name) {
			continue
		}
		if stem(name) == name {
			if _, err := c.root.Stat(path.Join(name, layoutIndex)); err != nil {
				continue
			}
		}
		files = append(files, name)
	}
	slices.Sort(files)
	return files, nil
}

// sideloadedNames returns the names of the sideloaded files.
func (c *Cache) sideloadedNames() ([]string, error) {
	files, err := c.sideloadedFiles()
	for i, f := range files {
		files[i] = stem(f)
	}
	return files, err
}
