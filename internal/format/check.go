package format

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// CheckOptions says how a package is checked.
type CheckOptions struct {
	// Limits bounds what is checked.
	Limits Limits
	// Policy says how severe each finding is.
	Policy Policy
	// CRDs is the API server's own validation, as the package apiserver has it. It is
	// passed in because it brings half an API server with it. Without it, only the
	// checks of this package are made.
	CRDs CRDValidator
}

// A CRDValidator says what an API server has against a CustomResourceDefinition of
// apiextensions.k8s.io/v1, given as JSON. It may be called from many goroutines.
type CRDValidator func(json []byte) []SchemaProblem

// A SchemaProblem is one thing an API server refuses in an object.
type SchemaProblem struct {
	// Path is the field, such as "spec.versions[0].name".
	Path string
	// Message says what is wrong with it.
	Message string
}

// Check makes the checks that need the content of the objects: everything that
// an API server would refuse, and what people will miss in the metadata. Read has
// made the others. All findings are given at once, with the severities of the
// policy, in the order of the documents.
func Check(pkg *Package, opts CheckOptions) []Finding {
	c := &checker{pkg: pkg, opts: opts, limits: opts.Limits.withDefaults(), lines: locator{doc: pkg.Meta.Raw}}
	c.checkMetaAnnotations()
	c.checkCapabilities()
	found := make([][]Finding, len(pkg.Objects))
	parallel(len(pkg.Objects), func(i int) {
		o := &objectChecker{checker: c, object: pkg.Objects[i], lines: locator{doc: pkg.Objects[i].Document}}
		o.check()
		found[i] = o.findings
	})
	findings := opts.Policy.apply(append(c.findings, slices.Concat(found...)...))
	sortFindings(findings)
	return findings
}

// Failed gives the error for findings of which at least one is an error, and nil
// for others. Findings gives them back.
func Failed(findings []Finding) error {
	if len(errorsOf(findings)) == 0 {
		return nil
	}
	return refuse(findings, "the package is refused")
}

// Lint gives everything that Read and Check have to say about a stream, at once.
func Lint(stream []byte, read ReadOptions, check CheckOptions) []Finding {
	docs, err := read.split(stream)
	if err != nil {
		return Findings(err)
	}
	pkg, findings := assemble(docs, read, nil)
	return merge(findings, Check(pkg, check))
}

// Lint gives everything that Package and Check have to say about the folder, at
// once.
func (f *Folder) Lint(read ReadOptions, check CheckOptions) []Finding {
	pkg, findings := f.assemble(read)
	return merge(findings, Check(pkg, check))
}

func merge(a, b []Finding) []Finding {
	all := slices.Concat(a, b)
	sortFindings(all)
	return all
}

// ErrUnknownCapability is the code for a capability that nobody knows.
var ErrUnknownCapability = failure.Register(failure.Code{
	Name: "UnknownCapability", Class: failure.Invalid,
	Cause: "The metadata names a capability that is not known; it has no effect.",
	Fix:   "Use composition or operation for a Function, safe-start for a Provider.",
})

type checker struct {
	pkg      *Package
	opts     CheckOptions
	limits   Limits
	lines    locator // of the metadata
	findings []Finding
}

func (c *checker) checkCapabilities() {
	known := []string{CapabilityComposition, CapabilityOperation, CapabilitySafeStart}
	for i, name := range c.pkg.Meta.Capabilities {
		same := func(k string) bool { return foldCapability(k) == foldCapability(name) }
		if !slices.ContainsFunc(known, same) {
			path := fmt.Sprintf("spec.capabilities[%d]", i)
			c.metaFinding(ErrUnknownCapability, path, "%s is %.60q", path, name)
		}
	}
}

// metaFinding records a finding about a field of the metadata. There is nothing
// to say about metadata that could not be read.
func (c *checker) metaFinding(code failure.Code, path, format string, args ...any) {
	m := c.pkg.Meta
	if m.Kind == "" {
		return
	}
	f := m.Raw.finding(&fault{code: code, line: c.lines.line(path), what: fmt.Sprintf(format, args...)})
	f.Kind, f.Name = string(m.Kind), m.Name
	c.findings = append(c.findings, f)
}

// sortProblems puts problems into an order that does not depend on maps.
func sortProblems(problems []SchemaProblem) {
	slices.SortStableFunc(problems, func(a, b SchemaProblem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
}
