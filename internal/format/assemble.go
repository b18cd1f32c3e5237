package format

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Codes for the one metadata object that a package must have (xpkg
// specification, package.yaml Contents).
var (
	ErrNoMeta = failure.Register(failure.Code{
		Name: "NoMeta", Class: failure.Invalid,
		Cause: "The package has no metadata object (Provider, Configuration or Function of meta.pkg.crossplane.io).",
		Fix:   "Add a crossplane.yaml that says what the package is.",
	})
	ErrManyMetas = failure.Register(failure.Code{
		Name: "ManyMetas", Class: failure.Invalid,
		Cause: "The package has more than one metadata object.",
		Fix:   "Keep one, and build a package for each of the others.",
	})
	ErrWrongKind = failure.Register(failure.Code{
		Name: "WrongKind", Class: failure.Invalid,
		Cause: "The package is of another kind than the one that was asked for.",
		Fix:   "Install it as the kind that it is.",
	})
	ErrDuplicateObject = failure.Register(failure.Code{
		Name: "DuplicateObject", Class: failure.Invalid,
		Cause: "The package holds the same object twice.",
		Fix:   "Remove one of the two.",
	})
)

// assembler makes a package out of documents, step by step, and goes on after
// whatever is wrong so that a person learns of everything at once.
type assembler struct {
	opts     ReadOptions
	limits   Limits
	entries  []entry
	unread   int // documents that are not among the entries
	pkg      *Package
	findings []Finding
}

// entry is a document with its header.
type entry struct {
	doc    Document
	header header
	err    error
}

// read reads all documents.
func (a *assembler) read(docs []Document) {
	a.entries = make([]entry, len(docs))
	parallel(len(docs), func(i int) { a.entries[i] = readEntry(docs[i]) })
	kept := a.entries[:0]
	for _, e := range a.entries {
		if e.err != nil {
			a.unread++
			a.findings = append(a.findings, e.doc.finding(e.err))
			continue
		}
		kept = append(kept, e)
	}
	a.entries = kept
}

func readEntry(d Document) entry {
	json, err := d.canonical()
	if err != nil {
		return entry{doc: d, err: err}
	}
	h, f := readHeader(json)
	if f != nil {
		return entry{doc: d, header: h, err: f}
	}
	return entry{doc: d, header: h}
}

// meta finds the one metadata object and takes it out of the entries.
func (a *assembler) meta() {
	var metas, others []entry
	for _, e := range a.entries {
		if isMetaGroup(e.header.gvk().Group) {
			metas = append(metas, e)
		} else {
			others = append(others, e)
		}
	}
	a.entries = others
	if len(metas) == 0 {
		// The metadata can be in a document that could not be read.
		if a.unread == 0 {
			a.add(Document{}, header{}, &fault{code: ErrNoMeta, what: "no metadata object " + among(others)})
		}
		return
	}
	for _, e := range metas[1:] {
		a.add(e.doc, e.header, &fault{code: ErrManyMetas, what: fmt.Sprintf("another metadata object; the first is at %s:%d", metas[0].doc.File, metas[0].doc.contentLine())})
	}
	first := metas[0]
	meta, faults := readMeta(first.doc, first.header, &a.limits)
	a.pkg.Meta = meta
	for _, f := range faults {
		a.add(first.doc, first.header, f)
	}
	if want := a.opts.Expect; want != "" && meta.Kind != "" && want != meta.Kind {
		a.add(first.doc, first.header, &fault{code: ErrWrongKind, what: fmt.Sprintf("the package is a %s, not a %s", meta.Kind, want)})
	}
}

// objects makes the objects of the package and leaves out those that may not be
// there. Without a known kind of package nothing can be said about that.
func (a *assembler) objects() {
	seen := map[string]Document{}
	for _, e := range a.entries {
		o := a.object(e)
		if a.pkg.Meta.Kind != "" {
			if f := checkKind(a.pkg.Meta.Kind, o.GVK); f != nil {
				a.add(e.doc, e.header, f)
				continue
			}
		}
		key := o.GVK.GroupKind().String() + "/" + o.Name
		if first, twice := seen[key]; twice && o.Name != "" {
			a.add(e.doc, e.header, &fault{code: ErrDuplicateObject, what: fmt.Sprintf("the same object is at %s:%d", first.File, first.contentLine())})
			continue
		}
		seen[key] = e.doc
		a.pkg.Objects = append(a.pkg.Objects, o)
	}
}

// object makes an object, under the name that API servers know it by.
func (a *assembler) object(e entry) Object {
	o := Object{GVK: e.header.gvk(), Name: e.header.name, Document: e.doc}
	if o.GVK.GroupKind() != admissionAlias {
		return o
	}
	a.add(e.doc, e.header, &fault{code: ErrKindAlias, what: "taken for a ValidatingWebhookConfiguration"})
	o.GVK.Kind = "ValidatingWebhookConfiguration"
	old, _ := e.doc.canonical() // it was read before
	was, now := []byte(`"`+admissionAlias.Kind+`"`), []byte(`"`+o.GVK.Kind+`"`)
	json := append(bytes.Clone(old[:e.header.kindAt]), now...)
	o.Document = e.doc.withJSON(append(json, old[e.header.kindAt+len(was):]...))
	return o
}

// add records a finding about a document.
func (a *assembler) add(d Document, h header, f *fault) {
	finding := placed(f, "")
	if d.File != "" {
		finding = d.finding(f)
	}
	finding.Kind, finding.Name = h.kind, h.name
	a.findings = append(a.findings, finding)
}

// among says in what documents something was looked for.
func among(entries []entry) string {
	if len(entries) == 0 {
		return "and no other document either"
	}
	var kinds []string
	for _, e := range entries {
		if kind := safe(e.header.kind); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	const most = 5
	if len(kinds) > most {
		kinds = append(kinds[:most], "…")
	}
	return fmt.Sprintf("in %s (%s)", wording.Count(len(entries), "document"), strings.Join(kinds, ", "))
}
