package xpkg

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/parallel"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// Codes for the metadata object, of which a package must have exactly one (xpkg specification,
// "package.yaml Contents").
var (
	ErrNoMeta = errcode.Code{
		Name: "NoMeta", Class: errcode.Invalid,
		Cause: "The package has no metadata object (Provider, Configuration or Function of meta.pkg.crossplane.io).",
		Fix:   "Add a crossplane.yaml with the metadata of the package, or a crossplane-project.yaml.",
	}
	ErrManyMetas = errcode.Code{
		Name: "ManyMetas", Class: errcode.Invalid,
		Cause: "The package has more than one metadata object.",
		Fix:   "Keep one, and build a package for each of the others.",
	}
	ErrWrongKind = errcode.Code{
		Name: "WrongKind", Class: errcode.Invalid,
		Cause: "The kind of the package differs from the requested kind.",
		Fix:   "Install it with its own kind.",
	}
	ErrDuplicateObject = errcode.Code{
		Name: "DuplicateObject", Class: errcode.Invalid,
		Cause: "The package contains the same object twice.",
		Fix:   "Remove one of the two.",
	}
)

// assembler builds a package from documents, step by step. It continues after an error,
// so that all findings are reported at once.
type assembler struct {
	opts     ReadOptions
	limits   Limits
	entries  []entry
	unread   int      // number of documents that are not in entries
	omitted  []string // files that look like metadata and were not read
	pkg      *Package
	findings []Finding
}

func newAssembler(opts ReadOptions) *assembler {
	return &assembler{opts: opts, limits: opts.Limits.WithDefaults(), pkg: &Package{}}
}

// assemble builds the package of the documents that were read, and returns its findings with their severities.
func (a *assembler) assemble() (*Package, []Finding) {
	a.meta()
	a.objects()
	a.checkEach()
	findings := a.opts.Policy.Apply(a.findings, severities)
	SortFindings(findings)
	return a.pkg, findings
}

// entry is a document with its header.
type entry struct {
	doc    Document
	header header
	err    error
}

// read reads documents, and adds those that can be read to the entries.
func (a *assembler) read(docs []Document) {
	all := make([]entry, len(docs))
	parallel.Do(len(docs), func(i int) { all[i] = readEntry(docs[i]) })
	a.entries = slices.Grow(a.entries, len(docs))
	for _, e := range all {
		if e.err != nil {
			a.unread++
			a.findings = append(a.findings, e.doc.faultFinding(e.err))
			continue
		}
		if f := e.doc.warning(); f != nil {
			a.add(e.doc, e.header, f)
		}
		a.entries = append(a.entries, e)
	}
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
			a.add(Document{}, header{}, a.noMeta())
		}
		return
	}
	for _, e := range metas[1:] {
		a.add(e.doc, e.header, refersTo(metas[0].doc, ErrManyMetas, "another metadata object; the first is"))
	}
	first := metas[0]
	meta, faults := readMeta(first.doc, first.header, &a.limits)
	a.pkg.Meta = meta
	for _, f := range faults {
		a.add(first.doc, first.header, f)
	}
	if want := a.opts.Expect; want != "" && meta.Kind != "" && want != meta.Kind {
		a.add(first.doc, first.header, &yamldoc.Fault{
			Code: ErrWrongKind, What: fmt.Sprintf("the package is a %s, not a %s", meta.Kind, want),
		})
	}
}

// noMeta describes the missing metadata object, and the document or file that is probably meant to be the metadata.
func (a *assembler) noMeta() *yamldoc.Fault {
	text := "no metadata object " + among(a.entries)
	for _, e := range a.entries {
		if gvk := e.header.gvk(); allowed[Kind(gvk.Kind)] != nil {
			return refersTo(e.doc, ErrNoMeta, fmt.Sprintf(
				"%s; the apiVersion is %.100q instead of meta.pkg.crossplane.io/v1 in the %s", text, e.header.apiVersion, gvk.Kind,
			))
		}
	}
	if len(a.omitted) > 0 {
		text += "; " + strings.Join(a.omitted[:min(3, len(a.omitted))], ", ")
	}
	return &yamldoc.Fault{Code: ErrNoMeta, What: text}
}

// refersTo returns a fault whose description ends with the place of a document.
func refersTo(other Document, code errcode.Code, what string) *yamldoc.Fault {
	return &yamldoc.Fault{Code: code, What: what, OtherFile: other.File, OtherLine: other.contentLine()}
}

// objects adds the objects of the package, except objects of kinds that are not allowed. If the kind
// of package is unknown, all kinds are allowed.
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
			a.add(e.doc, e.header, refersTo(first, ErrDuplicateObject, "the same object is"))
			continue
		}
		seen[key] = e.doc
		a.pkg.Objects = append(a.pkg.Objects, o)
	}
}

// object returns an object with the identity that API servers use.
func (a *assembler) object(e entry) Object {
	o := Object{GVK: e.header.gvk(), Name: e.header.name, Document: e.doc}
	if o.GVK.GroupKind() != admissionAlias {
		return o
	}
	a.add(e.doc, e.header, &yamldoc.Fault{Code: ErrKindAlias, What: "taken for a ValidatingWebhookConfiguration"})
	o.GVK.Kind = kinds.ValidatingWebhook
	old, _ := e.doc.canonical() // it was read before
	was, now := []byte(`"`+admissionAlias.Kind+`"`), []byte(`"`+o.GVK.Kind+`"`)
	json := append(bytes.Clone(old[:e.header.kindAt]), now...)
	o.Document = e.doc.withJSON(append(json, old[e.header.kindAt+len(was):]...))
	return o
}

// add records a finding about a document.
func (a *assembler) add(d Document, h header, f *yamldoc.Fault) {
	finding := placed(f, "")
	if d.File != "" {
		finding = d.faultFinding(f)
	}
	finding.Kind, finding.Name = h.kind, h.name
	a.findings = append(a.findings, finding)
}

// among describes the documents that were searched.
func among(entries []entry) string {
	if len(entries) == 0 {
		return "and no other document"
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
