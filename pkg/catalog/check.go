package catalog

import (
	"fmt"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Limits of a catalog.
const (
	maxVersions     = 20_000        // of one package
	maxKinds        = 20_000        // of one version
	maxHistoryKinds = 10 * maxKinds // of all versions of one package
	maxDependencies = 1_000         // of one version
	maxServed       = 100           // API versions of one kind
	maxShortNames   = 20
	maxName         = 253
	maxLabel        = 63
	maxConstraint   = 1024
)

// check fails with ErrUnindexable if the facts do not fit into a catalog.
func (f *Facts) check() error {
	if len(f.Head.Kinds) > maxKinds {
		return ErrUnindexable.New(nil, "the package defines %d kinds, at most %d are allowed", len(f.Head.Kinds), maxKinds)
	}
	for i := range f.Head.Kinds {
		if k := &f.Head.Kinds[i]; !k.valid() {
			return ErrUnindexable.New(nil, "the names of kind %.200q of group %.200q are not valid", k.Kind, k.Group)
		}
	}
	if n := len(f.Version.Dependencies); n > maxDependencies {
		return ErrUnindexable.New(nil, "the package has %d dependencies, at most %d are allowed", n, maxDependencies)
	}
	if n := len(f.Version.Crossplane); n > maxConstraint {
		return ErrUnindexable.New(nil, "the constraint of Crossplane has %d bytes, at most %d are allowed", n, maxConstraint)
	}
	return nil
}

// check fails if the row does not have the form of the format.
func (p *Package) check() error {
	for _, text := range []struct {
		value string
		most  int
	}{
		{p.Title, maxTitle}, {p.Summary, maxSummary}, {p.Category, maxWord}, {p.License, maxWord}, {p.Website, maxSummary},
		{p.SourceURL, maxSummary},
		{p.Publisher, maxTitle}, {p.ReplacedBy, maxSummary},
	} {
		if text.value != clip(text.value, text.most) {
			return fmt.Errorf("a text of %s is not one line of at most %d bytes", p.Repository, text.most)
		}
	}
	switch {
	case !slices.Contains([]string{"", "Provider", "Configuration", "Function"}, p.Type):
		return fmt.Errorf("%s has the unknown type %.100q", p.Repository, p.Type)
	case p.Latest != "" && !oci.ValidTag(p.Latest):
		return fmt.Errorf("%.200q is not a tag", p.Latest)
	case p.Rank < 0 || p.Kinds < 0:
		return fmt.Errorf("%s has a negative number of dependents or kinds", p.Repository)
	}
	return nil
}

// checkRow fails if the status of a version in an index does not have the form of the format.
func (s *Status) checkRow() error {
	if s == nil {
		return nil
	}
	if !slices.Contains([]State{Yanked, Retracted, Deprecated, Removed}, s.State) {
		return fmt.Errorf("unknown state %.100q", s.State)
	}
	return s.checkReason()
}

// valid reports whether all names of the kind are valid.
func (k *Kind) valid() bool {
	return validKind(k.Kind) && validGroup(k.Group) && validLabel(k.Plural) && validLabel(k.Singular) &&
		len(k.ShortNames) <= maxShortNames &&
		!slices.ContainsFunc(k.ShortNames, func(s string) bool { return !validLabel(s) }) &&
		len(k.Served) <= maxServed && !slices.ContainsFunc(k.Served, func(s string) bool { return !validLabel(s) }) &&
		slices.Contains([]string{"", "Namespaced", "Cluster"}, k.Scope) &&
		slices.Contains([]Role{Provides, Composite, Claim, Input, Elsewhere}, k.Role)
}

// validKind reports whether a name is a DNS label in any case.
func validKind(s string) bool {
	return len(s) > 0 && len(s) <= maxLabel && s[0] != '-' && s[len(s)-1] != '-' && only(s, func(c byte) bool {
		return c >= 'A' && c <= 'Z' || isLabelByte(c)
	})
}

func validLabel(s string) bool {
	return len(s) > 0 && len(s) <= maxLabel && s[0] != '-' && s[len(s)-1] != '-' && only(s, isLabelByte)
}

// validGroup reports whether a name is a DNS subdomain.
func validGroup(s string) bool {
	return len(s) > 0 && len(s) <= maxName && only(s, func(c byte) bool { return c == '.' || isLabelByte(c) })
}

func isLabelByte(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' }

func only(s string, allowed func(byte) bool) bool {
	for i := range len(s) {
		if !allowed(s[i]) {
			return false
		}
	}
	return true
}

// validRepository reports whether a name is the normalized name of a repository.
func validRepository(s string) bool {
	ref, err := oci.ParseReference(s, oci.ParseOptions{AllowUntagged: true})
	return err == nil && ref.Name() == s
}
