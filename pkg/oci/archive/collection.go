package archive

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

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// refName is the annotation of an entry of index.json that names it (OCI image
// specification, "Pre-Defined Annotation Keys").
const refName = "org.opencontainers.image.ref.name"

// maxCollection is the maximum number of entries of a collection.
const maxCollection = 20_000

// Collection is the directory of an OCI layout with many artifacts, each under the full
// reference that it was published under. It stores shared content once. It is safe for
// concurrent use.
type Collection struct {
	dir    string
	limits oci.Limits

	mu      sync.Mutex
	entries map[string]oci.Descriptor
}

// OpenCollection opens a collection. A directory that is empty or does not exist is an
// empty collection. It refuses a directory with other files.
func OpenCollection(dir string, limits oci.Limits) (*Collection, error) {
	limits = limits.WithDefaults()
	limits.IndexEntries = max(limits.IndexEntries, maxCollection)
	limits.Annotations = max(limits.Annotations, 2*maxCollection)
	limits.Manifest = max(limits.Manifest, 16<<20)
	c := &Collection{dir: dir, limits: limits, entries: map[string]oci.Descriptor{}}
	root, err := fileutil.OpenFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, withFolderAdvice(ErrArchiveNotFound.New(err, "cannot open %s", dir), dir)
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

// emptyOrBegun fails unless a directory is empty or contains only the files of an
// interrupted collection.
func emptyOrBegun(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != blobsFolderRoot && e.Name() != layoutFile && !isTemporary(e.Name()) {
			return ErrLayoutExists.New(nil, "the folder %s is not empty and not an OCI layout", dir)
		}
	}
	return err
}

// isTemporary reports whether name belongs to a temporary file of replaceFile in a killed
// process.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, "."+layoutFile) || strings.HasPrefix(name, "."+indexFile)
}

// blobsFolderRoot is the only folder in the root of a layout.
const blobsFolderRoot = "blobs"

func (c *Collection) load(index []byte) error {
	doc, err := oci.ParseDocument(index, "", c.limits)
	if err != nil {
		return err
	}
	if !doc.IsIndex() {
		return oci.ErrInvalidManifest.New(nil, "%s is not an index", indexFile)
	}
	for _, d := range doc.Manifests {
		name := d.Annotations[refName]
		if _, err := oci.ParseReference(name, oci.ParseOptions{}); err != nil {
			return ErrNotAnArchive.New(
				err, "the name of the entry %s of the layout is not the full reference of a package", d.Digest.Short(),
			).
				WithDo("Use a layout that was written by xpkg deps vendor.")
		}
		c.entries[name] = d
	}
	return nil
}

// References returns the references of the artifacts, each with its digest, in order.
func (c *Collection) References() []oci.Reference {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []oci.Reference
	for name, d := range c.entries {
		ref := oci.MustParseReference(name)
		out = append(out, ref.WithDigest(d.Digest))
	}
	slices.SortFunc(out, func(a, b oci.Reference) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// Artifact returns an artifact of the collection. The caller closes it.
func (c *Collection) Artifact(ref oci.Reference) (*Archive, error) {
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
	// The fields of the root in index.json are not part of the content.
	d.Annotations = nil
	a.content.Desc = d
	return a, nil
}

// entryName returns the name of an entry. It omits the digest if there is a tag, because
// the descriptor of the entry has it.
func entryName(ref oci.Reference) string {
	if ref.Tag != "" {
		ref.Digest = oci.Digest{}
	}
	return ref.String()
}

// Add writes an artifact to the directory. It does not read content again that is in the
// directory, so an interrupted collection resumes. Readers find the artifact after
// [Collection.Seal].
func (c *Collection) Add(ctx context.Context, ref oci.Reference, a oci.Artifact) error {
	blobs := filepath.Join(c.dir, filepath.FromSlash(blobsFolder))
	if err := os.MkdirAll(blobs, 0o755); err != nil { // The content is public.
		return folderError(err, c.dir)
	}
	to := layoutFolder{dir: c.dir, limits: c.limits}
	err := oci.Walk(ctx, a, c.limits, func(ctx context.Context, d oci.Descriptor, _ []byte) error {
		// Files of the folder appear complete, under the verified digest.
		if info, err := os.Lstat(filepath.Join(c.dir, filepath.FromSlash(blobName(d.Digest)))); err == nil &&
			info.Mode().IsRegular() && info.Size() == d.Size {
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

// Seal writes index.json with all added artifacts. Equal artifacts have an equal
// index.json.
func (c *Collection) Seal() error {
	doc := oci.Document{SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex, Manifests: []oci.Descriptor{}}
	for _, ref := range c.References() {
		doc.Manifests = append(doc.Manifests, c.entries[entryName(ref)])
	}
	index, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", indexFile, err)
	}
	to := layoutFolder{dir: c.dir, limits: c.limits}
	if err := os.MkdirAll(c.dir, 0o755); err != nil { // The content is public.
		return folderError(err, c.dir)
	}
	if err := to.file(layoutFile, []byte(layoutContent)); err != nil {
		return err
	}
	return to.file(indexFile, index)
}
