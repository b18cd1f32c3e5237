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

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// endings are those of files that people put into the folder of the cache, in the
// order in which they are sought.
var endings = []string{".xpkg", ".xpkg.gz", ".tar"}

// layoutIndex is the file that changes when an OCI layout does.
const layoutIndex = "index.json"

// imported is what was read of a file in the folder of the cache.
type imported struct {
	info  fs.FileInfo
	parts []oci.Digest
}

// current says whether the file is still the one that was read.
func (i imported) current(now fs.FileInfo) bool {
	return i.info != nil && os.SameFile(i.info, now) && i.info.Size() == now.Size() && i.info.ModTime().Equal(now.ModTime())
}

// stem is a file name without its ending.
func stem(file string) string {
	for _, e := range slices.Backward(endings) {
		if s, ok := strings.CutSuffix(file, e); ok {
			return s
		}
	}
	return file
}

// filesOf lists the files that a name may mean.
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

// dropped gives the content of what lies in the folder of the cache under a plain
// name. It fails with ArchiveNotFound when nothing does.
func (c *Cache) dropped(ctx context.Context, name string) (oci.Digest, error) {
	for _, file := range filesOf(name) {
		info, err := c.root.Stat(file)
		switch {
		case err == nil:
			return c.importFile(ctx, file, info)
		case !errors.Is(err, fs.ErrNotExist):
			return oci.Digest{}, oci.ErrNotAnArchive.New(err, "cannot read %s in the package cache %s", file, c.dir)
		}
	}
	if info, err := c.root.Stat(name); err == nil && info.IsDir() && name != storeDir {
		if info, err = c.root.Stat(path.Join(name, layoutIndex)); err != nil {
			return oci.Digest{}, oci.ErrNotAnArchive.New(err, "the folder %s of the package cache %s is not an OCI layout", name, c.dir)
		}
		return c.importFile(ctx, name, info)
	}
	return oci.Digest{}, oci.ErrArchiveNotFound.New(nil, "nothing in the package cache %s is named %s", c.dir, name)
}

// importFile copies what is needed of a file into the store, unless that is there
// already.
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

// addFrom copies what is needed of a file in the folder into the store. The root
// comes first of what it gives.
func (c *Cache) addFrom(ctx context.Context, file string) (_ []oci.Digest, err error) {
	a, err := c.store.OpenArchive(ctx, c.root, file, c.limits)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	_, parts, err := c.store.AddPackage(ctx, a, c.limits)
	return parts, err
}

// droppedFiles lists what people put into the folder of the cache, as far as it can
// be asked for.
func (c *Cache) droppedFiles() ([]string, error) {
	f, err := c.root.Open(".")
	if err != nil {
		return nil, oci.ErrStoreWrite.New(err, "cannot read the package cache %s", c.dir)
	}
	entries, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, oci.ErrStoreWrite.New(err, "cannot read the package cache %s", c.dir)
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if name == storeDir || !plainName.MatchString(name) {
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

// droppedNames lists the names of what people put into the folder.
func (c *Cache) droppedNames() ([]string, error) {
	files, err := c.droppedFiles()
	for i, f := range files {
		files[i] = stem(f)
	}
	return files, err
}
