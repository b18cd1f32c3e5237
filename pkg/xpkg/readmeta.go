package xpkg

import (
	"bytes"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// ReadMeta reads only the metadata object of a package.yaml, for example to determine its
// dependencies. Use [Read] to validate the package.
//
// The error has the class Limit if the stream exceeds a limit, and Invalid otherwise.
func ReadMeta(stream []byte, opts ReadOptions) (Meta, error) {
	docs, err := opts.split(stream)
	if err != nil {
		return Meta{}, err
	}
	found, ok := findMeta(docs)
	if !ok {
		return Meta{}, refuse(
			[]Finding{placed(&yamldoc.Fault{Code: ErrNoMeta, What: "no metadata object"}, opts.File)}, "the package is refused",
		)
	}
	return checkedMeta(found, opts)
}

// findMeta reads documents that contain the metadata group first, so that a large package
// is not parsed completely.
func findMeta(docs []Document) (entry, bool) {
	for _, likely := range []bool{true, false} {
		for _, d := range docs {
			if bytes.Contains(d.Raw, []byte("meta.pkg.")) != likely {
				continue
			}
			if e := readEntry(d); e.err == nil && isMetaGroup(e.header.gvk().Group) {
				return e, true
			}
		}
	}
	return entry{}, false
}

func checkedMeta(e entry, opts ReadOptions) (Meta, error) {
	limits := opts.Limits.WithDefaults()
	meta, faults := readMeta(e.doc, e.header, &limits)
	var findings []Finding
	for _, f := range faults {
		findings = append(findings, e.doc.faultFinding(f))
	}
	findings = opts.Policy.Apply(findings, severities)
	if len(errorsOf(findings)) > 0 {
		return Meta{}, refuse(findings, "the package is refused")
	}
	return meta, nil
}

// Meta reads only the metadata of the package. It fails if the file with the metadata has an error.
func (f *Folder) Meta(opts ReadOptions) (Meta, error) {
	found, ok := findMeta(f.Documents)
	if !ok {
		_, err := f.Package(opts) // A file that is no YAML is not among the documents.
		return Meta{}, err
	}
	var findings []Finding
	for _, about := range f.findings {
		if about.File == found.doc.File {
			findings = append(findings, about)
		}
	}
	if err := Failed(opts.Policy.Apply(findings, severities)); err != nil {
		return Meta{}, err
	}
	return checkedMeta(found, opts)
}

// ReadMetaDocument reads the metadata object from its document.
func ReadMetaDocument(doc Document, opts ReadOptions) (Meta, error) {
	e := readEntry(doc)
	if e.err != nil {
		return Meta{}, refuse([]Finding{doc.faultFinding(e.err)}, "cannot read the metadata")
	}
	if !isMetaGroup(e.header.gvk().Group) {
		return Meta{},
			refuse([]Finding{doc.Finding(ErrNoMeta, 0, "the document is not a metadata object")}, "the package is refused")
	}
	return checkedMeta(e, opts)
}
