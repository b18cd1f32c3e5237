package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/parallel"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// Options configures the checks.
type Options struct {
	// Limits for the checks.
	Limits xpkg.Limits
	// Policy sets the severity of each finding.
	Policy xpkg.Policy
	// CRDs is the CRD validation of the API server. It is a parameter because of its
	// dependencies: the caller decides whether to link it. Nil means only the checks of
	// this package.
	CRDs Validator
}

// A Validator validates an object, given as JSON, as an API server does. It must be safe
// for concurrent use.
type Validator func(json []byte) []Problem

// A Problem is one reason for which an API server rejects an object.
type Problem struct {
	// Path is the field, such as "spec.versions[0].name".
	Path string
	// Message describes the problem.
	Message string
}

// Package runs the checks that need the content of the objects: everything that an API
// server would reject, and missing metadata. xpkg.Read has run the others. It returns all
// findings with the severities of the policy, in document order.
func Package(pkg *xpkg.Package, opts Options) []xpkg.Finding {
	c := &checker{pkg: pkg, opts: opts, limits: opts.Limits.WithDefaults(), lines: yamldoc.Locator{Raw: pkg.Meta.Raw.Raw}}
	c.checkMetaAnnotations()
	c.checkCapabilities()
	objects := make([]*objectChecker, len(pkg.Objects))
	parallel.Do(len(pkg.Objects), func(i int) {
		objects[i] = &objectChecker{checker: c, object: pkg.Objects[i], lines: yamldoc.Locator{Raw: pkg.Objects[i].Raw}}
		objects[i].check()
	})
	checkCRDNames(objects)
	found := c.findings
	for _, o := range objects {
		found = append(found, o.findings...)
	}
	findings := opts.Policy.Apply(found, severities)
	xpkg.SortFindings(findings)
	return findings
}

// Stream reads a package.yaml, as far as that is possible, and returns the findings of
// xpkg.Read and of Package.
func Stream(stream []byte, read xpkg.ReadOptions, opts Options) []xpkg.Finding {
	pkg, findings := xpkg.Inspect(stream, read)
	return merge(findings, pkg, opts)
}

// Folder reads the documents of a folder, as far as that is possible, and returns the
// findings of Folder.Package and of Package.
func Folder(folder *xpkg.Folder, read xpkg.ReadOptions, opts Options) []xpkg.Finding {
	pkg, findings := folder.Inspect(read)
	return merge(findings, pkg, opts)
}

func merge(findings []xpkg.Finding, pkg *xpkg.Package, opts Options) []xpkg.Finding {
	all := slices.Concat(findings, Package(pkg, opts))
	xpkg.SortFindings(all)
	return all
}

type checker struct {
	pkg      *xpkg.Package
	opts     Options
	limits   xpkg.Limits
	lines    yamldoc.Locator // of the metadata
	findings []xpkg.Finding
}

func (c *checker) checkCapabilities() {
	known := []string{xpkg.CapabilityComposition, xpkg.CapabilityOperation, xpkg.CapabilitySafeStart}
	for i, name := range c.pkg.Meta.Capabilities {
		if !slices.ContainsFunc(known, xpkg.Meta{Capabilities: []string{name}}.HasCapability) {
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
	f := m.Raw.Finding(code, c.lines.Line(path), fmt.Sprintf(format, args...))
	f.Kind, f.Name = string(m.Kind), m.Name
	c.findings = append(c.findings, f)
}

// sortProblems puts problems into an order that does not depend on maps.
func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
}
