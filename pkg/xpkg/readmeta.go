package xpkg

import "bytes"

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
		return Meta{}, refuse([]Finding{placed(&fault{code: ErrNoMeta, what: "no metadata object"}, opts.File)}, "the package is refused")
	}
	return checkedMeta(found, opts)
}

// findMeta looks first at the documents that name the group, so that a large
// package does not have to be parsed for its smallest document.
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
	limits := opts.Limits.withDefaults()
	meta, faults := readMeta(e.doc, e.header, &limits)
	var findings []Finding
	for _, f := range faults {
		findings = append(findings, e.doc.finding(f))
	}
	findings = opts.Policy.apply(findings)
	if len(errorsOf(findings)) > 0 {
		return Meta{}, refuse(findings, "the package is refused")
	}
	return meta, nil
}

// NewMetaIndex returns an index with the metadata alone.
func NewMetaIndex(meta Meta) (*Index, error) {
	text, err := meta.Raw.JSON()
	if err != nil {
		return nil, err
	}
	return &Index{Version: IndexVersion, File: meta.Raw.File, Meta: text, MetaLine: meta.Raw.Line}, nil
}

// ReadMeta returns the metadata of the index.
func (x *Index) ReadMeta(limits Limits) (Meta, error) {
	pkg, err := (&Index{Version: x.Version, File: x.File, Meta: x.Meta, MetaLine: x.MetaLine}).Package(nil, limits)
	if err != nil {
		return Meta{}, err
	}
	return pkg.Meta, nil
}
