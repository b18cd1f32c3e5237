package provide

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A Package is the content of one version of a package.
type Package struct {
	Repository, Version string
	Digest              oci.Digest
	Content             *xpkg.Package
	// Downloaded is as in Candidate.
	Downloaded bool
}

// Packages is the source of packages whose content is at hand, such as those of the package cache.
type Packages struct {
	All []Package
	// Name and Priority are those of the candidates.
	Name     string
	Priority int
	// Fits is as in Catalog.
	Fits func(constraint string) bool
}

var _ VersionSource = Packages{}

// ForCrossplane implements [VersionSource].
func (s Packages) ForCrossplane(fits func(constraint string) bool) Source {
	s.Fits = fits
	return s
}

// Candidates implements [Source]. Of several versions of a package, it returns the newest one that can be installed and
// serves the required API version.
func (s Packages) Candidates(kind dependency.KindRef) []Candidate {
	var out []Candidate
	for _, c := range s.candidates(kind) {
		at := slices.IndexFunc(out, func(o Candidate) bool { return o.Repository == c.Repository })
		switch {
		case at < 0:
			out = append(out, c)
		case preferVersion(c, out[at], kind.Version) < 0:
			out[at] = c
		}
	}
	return out
}

// preferVersion orders versions of one package: those that can be installed and serve an API version come first.
func preferVersion(a, b Candidate, apiVersion string) int {
	return cmp.Or(
		compareBool(a.Version == "", b.Version == ""),
		-compareBool(slices.Contains(a.Served, apiVersion), slices.Contains(b.Served, apiVersion)),
		compareVersions(a, b),
	)
}

// compareVersions orders candidates that a user has added before those that were downloaded, releases before
// prereleases, and newer versions before older ones. Tags that are not versions, and digests, come last.
func compareVersions(a, b Candidate) int {
	v, w := version.Parse(a.Version), version.Parse(b.Version)
	return cmp.Or(
		compareBool(a.Downloaded, b.Downloaded),
		-compareBool(v.Usable(), w.Usable()),
		compareBool(v.Usable() && v.Prerelease(), w.Usable() && w.Prerelease()),
		-v.Compare(&w),
		-cmp.Compare(a.Version, b.Version),
	)
}

func (s Packages) candidates(kind dependency.KindRef) []Candidate {
	var out []Candidate
	for _, p := range s.All {
		d := findDefinition(p.Content, kind)
		if d == nil {
			d = findDefinition(p.Content, dependency.KindRef{Name: kind.Name, Group: kind.Group})
		}
		if d == nil {
			continue
		}
		c := s.candidate(p, d.namesFor(kind), kind.Group)
		c.Served, c.CRDs = d.served(), definitions(p.Content, "")
		out = append(out, c)
	}
	return out
}

// namesFor returns the names of the kind or of the claim of an XRD.
func (d *definition) namesFor(kind dependency.KindRef) names {
	if c := d.Spec.ClaimNames; c.Kind != "" && kind.Matches(d.Spec.Group, c.Kind, c.Plural, c.Singular) && !kind.IsAll() {
		return c
	}
	return d.Spec.Names
}

// served returns the served API versions.
func (d *definition) served() []string {
	var out []string
	for _, v := range d.Spec.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	if len(d.Spec.Versions) == 0 && d.Spec.Version != "" {
		out = append(out, d.Spec.Version)
	}
	return out
}

func (s Packages) candidate(p Package, n names, group string) Candidate {
	c := Candidate{
		Repository: p.Repository, Version: p.Version, Digest: p.Digest, Kind: n.Kind, Group: group, Plural: n.Plural,
		Singular: n.Singular,
		Type:     string(p.Content.Meta.Kind), Cost: len(definitions(p.Content, "")), Source: s.Name, Priority: s.Priority,
		Downloaded: p.Downloaded,
	}
	if p.Content.Meta.Kind == xpkg.Function {
		c.Role = Input
	}
	if p.Version == "" {
		c.Version = p.Digest.String()
	}
	if requires := p.Content.Meta.Crossplane; s.Fits != nil && requires != "" && !s.Fits(requires) {
		c.Version, c.Unusable = "", requiresCrossplane(c.Version, requires)
	}
	return c
}

// definitions returns the names of the CRDs and XRDs of a package in an API group, or in all groups if it is empty.
func definitions(pkg *xpkg.Package, group string) []string {
	var out []string
	for _, o := range pkg.Objects {
		if isDefinition(o.GVK.Kind) && (group == "" || strings.HasSuffix(o.Name, "."+group)) {
			out = append(out, o.Name)
		}
	}
	return out
}

func isDefinition(kind string) bool {
	return slices.Contains(
		[]string{"CustomResourceDefinition", "CompositeResourceDefinition", "ManagedResourceDefinition"}, kind,
	)
}

// Group implements [Source].
func (s Packages) Group(group string) []Candidate {
	var out []Candidate
	for _, p := range s.All {
		for _, o := range p.Content.Objects {
			if plural, ok := strings.CutSuffix(o.Name, "."+group); !ok || strings.Contains(plural, ".") ||
				!isDefinition(o.GVK.Kind) {
				continue
			}
			text, err := o.JSON()
			var d definition
			if err != nil || json.Unmarshal(text, &d) != nil || d.Spec.Group != group {
				continue
			}
			c := s.candidate(p, d.Spec.Names, group)
			c.Served = d.served()
			out = append(out, c)
		}
	}
	return out
}

// Kinds implements [Source]. It returns the names of resources, which need no reading of the definitions.
func (s Packages) Kinds() []dependency.KindRef {
	var out []dependency.KindRef
	for _, p := range s.All {
		if p.Content.Meta.Kind == xpkg.Function {
			continue
		}
		for _, name := range definitions(p.Content, "") {
			if k, err := dependency.ParseKindRef(name + "/v1"); err == nil {
				k.Version = ""
				out = append(out, k)
			}
		}
	}
	return out
}

// CompareSchemas compares the schema of a kind in a package with its schema in another one, in the required version or
// the first common one.
func CompareSchemas(first, other *xpkg.Package, kind dependency.KindRef) Difference {
	a, b := findDefinition(first, kind), findDefinition(other, kind)
	if a == nil || b == nil {
		return Unknown
	}
	for _, v := range a.Spec.Versions {
		if kind.Version != "" && v.Name != kind.Version {
			continue
		}
		for _, w := range b.Spec.Versions {
			if v.Name == w.Name {
				return compareJSON(v.Schema, w.Schema)
			}
		}
	}
	return Different
}

// compareJSON compares schemas: equal, or more fields and values than in the first, or different.
func compareJSON(first, other json.RawMessage) Difference {
	var a, b any
	if json.Unmarshal(first, &a) != nil || json.Unmarshal(other, &b) != nil {
		return Unknown
	}
	a, b = withoutTexts(a), withoutTexts(b)
	switch {
	case contains(b, a) && contains(a, b):
		return Equal
	case contains(b, a) && sameRequired(a, b):
		return Superset
	}
	return Different
}

// withoutTexts removes descriptions, which do not change which objects are valid.
func withoutTexts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if _, text := value.(string); key != "description" || !text {
				out[key] = withoutTexts(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutTexts(v[i])
		}
		return out
	}
	return v
}

// contains reports whether a value has all fields and elements of another one.
func contains(all, some any) bool {
	switch some := some.(type) {
	case map[string]any:
		m, ok := all.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range some {
			if other, has := m[key]; !has || !contains(other, value) {
				return false
			}
		}
		return true
	case []any:
		list, ok := all.([]any)
		if !ok {
			return false
		}
		return containsElements(list, some)
	}
	return all == some
}

// containsElements reports whether a list has all elements of another one, in any order.
func containsElements(all, some []any) bool {
	has := map[string]bool{}
	for _, v := range all {
		text, _ := json.Marshal(v) // it was read from JSON
		has[string(text)] = true
	}
	for _, v := range some {
		if text, _ := json.Marshal(v); !has[string(text)] {
			return false
		}
	}
	return true
}

// sameRequired reports whether a schema with more fields requires no other fields, so that objects of the first schema
// stay valid.
func sameRequired(a, b any) bool {
	m, ok := b.(map[string]any)
	if !ok {
		return true
	}
	n, _ := a.(map[string]any)
	for key, value := range m {
		_, isList := value.([]any)
		if has, ok := n[key]; isList && (key == "required" || key == "x-kubernetes-validations") &&
			(!ok || !contains(has, value)) && n != nil {
			return false
		} else if ok && !sameRequired(has, value) {
			return false
		}
	}
	return true
}
