package archive

import (
	"errors"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// refName is the annotation of an entry of index.json that names it (OCI image
// specification, "Pre-Defined Annotation Keys").
const refName = "org.opencontainers.image.ref.name"

// Entry is an image of an OCI layout.
type Entry struct {
	// Name is the annotation org.opencontainers.image.ref.name of the entry: a tag, a full
	// reference, or "".
	Name string
	oci.Descriptor
}

// Entries returns the entries of index.json of the OCI layout in a directory, in their order.
func Entries(dir string, limits oci.Limits) (_ []Entry, err error) {
	root, err := fileutil.OpenFolder(dir)
	if err != nil {
		return nil, withFolderAdvice(ErrArchiveNotFound.New(err, "cannot open %s", dir), dir)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	limits = limits.WithDefaults()
	a := &Archive{files: folder{root}}
	raw, err := a.readFile(indexFile, limits)
	if err != nil {
		return nil, ErrNotAnArchive.New(err, "cannot read %s of %s", indexFile, dir)
	}
	doc, err := oci.ParseDocument(raw, "", limits)
	if err != nil {
		return nil, err
	}
	if !doc.IsIndex() {
		return nil, oci.ErrInvalidManifest.New(nil, "%s is not an index", indexFile)
	}
	var out []Entry
	for _, d := range doc.Manifests {
		e := Entry{Name: d.Annotations[refName], Descriptor: d}
		// The annotations of index.json are not part of the content.
		e.Descriptor.Annotations = nil
		out = append(out, e)
	}
	return out, nil
}

// OpenEntry opens one image of the OCI layout in a directory.
func OpenEntry(dir string, e Entry) (*Archive, error) {
	root, err := fileutil.OpenFolder(dir)
	if err != nil {
		return nil, withFolderAdvice(ErrArchiveNotFound.New(err, "cannot open %s", dir), dir)
	}
	a := &Archive{files: folder{root}, close: root.Close}
	a.content.Desc = e.Descriptor
	return a, nil
}
