package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// refName is the annotation of an entry of index.json that names it (OCI image
// specification, "Pre-Defined Annotation Keys").
const refName = "org.opencontainers.image.ref.name"

// maxCollection bounds the entries of a collection.
const maxCollection = 20_000

// Collection is the folder of an OCI layout that holds many artifacts, each under
// the whole reference that it was published under. What they share it holds once.
// It can be used by many goroutines.
type Collection struct {
	dir    string
	limits Limits

	mu      sync.Mutex
	entries map[string]Descriptor
}

// OpenCollection opens a collection. A folder that is empty or does not exist is an
// empty one; one with something else in it is refused.
func OpenCollection(dir string, limits Limits) (*Collection, error) {
	limits = limits.WithDefaults()
	limits.IndexEntries = max(limits.IndexEntries, maxCollection)
	limits.Annotations = max(limits.Annotations, 2*maxCollection)
	limits.Manifest = max(limits.Manifest, 16<<20)
	c := &Collection{dir: dir, limits: limits, entries: map[string]Descriptor{}}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot open %s", dir)
	}
	defer root.Close()
	a := &Archive{files: folder{root}}
	raw, err := a.readFile(indexFile, limits)
	if errors.Is(err, fs.ErrNotExist) {
		return c, emptyOrBegun(dir)
	}
	if err != nil {
		return nil, err
	}
	return c, c.load(raw)
}

// emptyOrBegun refuses a folder that is neither empty nor what a collection leaves
// behind that was interrupted.
func emptyOrBegun(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != blobsFolderRoot && e.Name() != layoutFile && !strings.HasPrefix(e.Name(), writingPrefix) {
			return ErrLayoutExists.New(nil, "the folder %s is not empty and no OCI layout", dir)
		}
	}
	return err
}

const (
	// blobsFolderRoot is the one folder of a layout.
	blobsFolderRoot = "blobs"
	// writingPrefix begins the names of files that are being written.
	writingPrefix = ".xpkg-"
)

func (c *Collection) load(index []byte) error {
	doc, err := ParseDocument(index, "", c.limits)
	if err != nil {
		return err
	}
	if !doc.IsIndex() {
		return ErrInvalidManifest.New(nil, "%s is not an index", indexFile)
	}
	for _, d := range doc.Manifests {
		name := d.Annotations[refName]
		if _, err := ParseReference(name, ParseOptions{}); err != nil {
			return ErrNotAnArchive.New(err, "the entry %s of the layout does not have the whole reference of a package as its name", d.Digest.Short()).
				WithDo("Use a layout that xpkg deps vendor has written.")
		}
		c.entries[name] = d
	}
	return nil
}

// References are the artifacts of the collection, each with its digest, in order.
func (c *Collection) References() []Reference {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Reference
	for name, d := range c.entries {
		ref := MustParseReference(name)
		out = append(out, ref.WithDigest(d.Digest))
	}
	slices.SortFunc(out, func(a, b Reference) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// Artifact gives one artifact of the collection. Close it when it is no longer
// needed.
func (c *Collection) Artifact(ref Reference) (*Archive, error) {
	c.mu.Lock()
	d, ok := c.entries[entryName(ref)]
	c.mu.Unlock()
	if !ok {
		return nil, ErrArchiveNotFound.New(nil, "there is no %s in %s", ref, c.dir)
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot open %s", c.dir)
	}
	a := &Archive{files: folder{root}, close: root.Close}
	// What stands in index.json about the root is not part of the content.
	d.Annotations = nil
	a.root = d
	return a, nil
}

// entryName is the name of an entry: with a tag, its digest is told by the entry.
func entryName(ref Reference) string {
	if ref.Tag != "" {
		ref.Digest = Digest{}
	}
	return ref.String()
}

// Add writes an artifact into the folder. What is there already is not read again, so
// that an interrupted collection goes on where it was. The artifact is found by
// others after [Collection.Seal].
func (c *Collection) Add(ctx context.Context, ref Reference, a Artifact) error {
	blobs := filepath.Join(c.dir, filepath.FromSlash(blobsFolder))
	if err := os.MkdirAll(blobs, 0o755); err != nil { //nolint:gosec // The content is public.
		return ErrCannotWrite.New(err, "cannot make the folder %s", c.dir)
	}
	to := layoutFolder{dir: c.dir, limits: c.limits}
	err := walk(ctx, a, c.limits, func(ctx context.Context, d Descriptor, _ []byte) error {
		// Files of the folder appear whole, under the digest that was verified.
		if info, err := os.Lstat(filepath.Join(c.dir, filepath.FromSlash(blobName(d.Digest)))); err == nil && info.Mode().IsRegular() && info.Size() == d.Size {
			return nil
		}
		return to.blob(ctx, a, d)
	})
	if err != nil {
		return err
	}
	root := a.Root()
	root.Platform, root.Annotations = nil, map[string]string{refName: entryName(ref)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[entryName(ref)] = root
	return nil
}

// Seal writes index.json, in which everything is that was added. The same artifacts
// give the same bytes.
func (c *Collection) Seal() error {
	doc := Document{SchemaVersion: 2, MediaType: MediaTypeOCIIndex, Manifests: []Descriptor{}}
	for _, ref := range c.References() {
		doc.Manifests = append(doc.Manifests, c.entries[entryName(ref)])
	}
	index, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", indexFile, err)
	}
	to := layoutFolder{dir: c.dir, limits: c.limits}
	if err := os.MkdirAll(c.dir, 0o755); err != nil { //nolint:gosec // The content is public.
		return ErrCannotWrite.New(err, "cannot make the folder %s", c.dir)
	}
	if err := to.file(layoutFile, []byte(layoutContent)); err != nil {
		return err
	}
	return to.file(indexFile, index)
}
