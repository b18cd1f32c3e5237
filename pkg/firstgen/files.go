package firstgen

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ReadLocation reads the package at a location of a file system; see [Find].
func ReadLocation(fsys fs.FS, l Location, opts Options) (*Package, error) {
	root, err := fs.Sub(fsys, l.Root)
	if err != nil {
		return nil, ErrNoRegistryFolder.New(err, "cannot read %s", l.Root)
	}
	if l.CRDs != "" {
		if opts.CRDs, err = fs.Sub(fsys, l.CRDs); err != nil {
			return nil, ErrNoRegistryFolder.New(err, "cannot read %s", l.CRDs)
		}
	}
	return Read(root, opts)
}

// Files returns the files of the folder .registry for the package at a location: the files of the folder that belong to
// a package and, for a package in source form, its CRDs beside their metadata, as a build places them. [ReadFiles]
// returns the same package for them.
func Files(fsys fs.FS, l Location, opts Options) (map[string][]byte, error) {
	r := &reader{opts: opts, limits: opts.Limits.WithDefaults()}
	root, err := fs.Sub(fsys, l.Root)
	if err != nil {
		return nil, ErrNoRegistryFolder.New(err, "cannot read %s", l.Root)
	}
	files, err := r.readFiles(root)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, f := range files {
		out[f.path] = f.data
	}
	if l.CRDs == "" {
		return out, nil
	}
	crds, err := fs.Sub(fsys, l.CRDs)
	if err != nil {
		return nil, ErrNoRegistryFolder.New(err, "cannot read %s", l.CRDs)
	}
	extra, err := r.readFiles(crds)
	if err != nil {
		return nil, err
	}
	m := &metadata{}
	for _, f := range files {
		if hasSuffix(f.base(), resourceSuffix) {
			m.resources = append(m.resources, attached[ResourceMeta]{path: f.path})
		}
	}
	for _, f := range extra {
		maps.Copy(out, r.placeCRDs(f, m, out))
	}
	return out, nil
}

// placeCRDs returns a file for each CRD of a file outside of the folder.
func (r *reader) placeCRDs(f file, m *metadata, taken map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for _, d := range r.documents(f) {
		text, err := d.JSON()
		if err != nil {
			continue // Read reports it.
		}
		var header struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct{ Group string }
		}
		if json.Unmarshal(text, &header) != nil || header.Kind != crdKind || !isDNSSubdomain(header.Metadata.Name) {
			continue
		}
		place := func(n int) string {
			name := header.Metadata.Name
			if n > 0 {
				name = fmt.Sprintf("%s.%d", name, n)
			}
			return m.folderOf(header.Spec.Group) + "/" + name + "." + crdSuffix
		}
		n := 0
		for taken[place(n)] != nil || out[place(n)] != nil {
			n++
		}
		out[place(n)] = slices.Clone(d.Raw)
	}
	return out
}

// PlaceFindings puts a folder before the paths of findings.
func PlaceFindings(folder string, findings []xpkg.Finding) []xpkg.Finding {
	out := slices.Clone(findings)
	for i := range out {
		for _, file := range []*string{&out[i].File, &out[i].Other.File} {
			if *file != "" {
				*file = folder + "/" + *file
			}
		}
	}
	return out
}
