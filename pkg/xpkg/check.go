package xpkg

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// CheckOptions configures Check.
type CheckOptions struct {
	// Limits for the checks.
	Limits Limits
	// Policy sets the severity of each finding.
	Policy Policy
	// CRDs is the CRD validation of the API server. It is a parameter because of its
	// dependencies: the caller decides whether to link it. Nil means only the checks of
	// this package.
	CRDs CRDValidator
}

// A CRDValidator validates a CustomResourceDefinition of apiextensions.k8s.io/v1, given
// as JSON, as an API server does. It must be safe for concurrent use.
type CRDValidator func(json []byte) []SchemaProblem

// A SchemaProblem is one thing an API server refuses in an object.
type SchemaProblem struct {
	// Path is the field, such as "spec.versions[0].name".
	Path string
	// Message describes the problem.
	Message string
}

// Check runs the checks that need the content of the objects: everything that an API
// server would reject, and missing metadata. Read has run the others. It returns all
// findings with the severities of the policy, in document order.
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

// Failed returns an error if at least one of the findings is an error, and nil otherwise.
// Findings returns the findings of such an error.
func Failed(findings []Finding) error {
	if len(errorsOf(findings)) == 0 {
		return nil
	}
	return refuse(findings, "the package is refused")
}

// Lint returns all findings of Read and Check for a stream.
func Lint(stream []byte, read ReadOptions, check CheckOptions) []Finding {
	docs, err := read.split(stream)
	if err != nil {
		return Findings(err)
	}
	pkg, findings := assemble(docs, read, nil)
	return merge(findings, Check(pkg, check))
}

// Lint returns all findings of Package and Check for the folder.
func (f *Folder) Lint(read ReadOptions, check CheckOptions) []Finding {
	pkg, findings := f.assemble(read)
	return merge(findings, Check(pkg, check))
}

func merge(a, b []Finding) []Finding {
	all := slices.Concat(a, b)
	sortFindings(all)
	return all
}

// ErrUnknownCapability is the code for an unknown capability.
var ErrUnknownCapability = errcode.Code{
	Name: "UnknownCapability", Class: errcode.Invalid,
	Cause: "The metadata names a capability that is not known; it has no effect.",
	Fix:   "Use composition or operation for a Function, safe-start for a Provider.",
}

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

// metaFinding records a finding about a field of the metadata. It does nothing if the
// metadata could not be read.
func (c *checker) metaFinding(code errcode.Code, path, format string, args ...any) {
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
