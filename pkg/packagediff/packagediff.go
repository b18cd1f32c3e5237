// Package packagediff compares two versions of a package by meaning: the metadata, the CRDs and XRDs field by field,
// and all other objects by their content.
//
// The schemas of XRDs are compared like the schemas of CRDs, because the composition engine creates a CRD from each;
// the other fields of an XRD, such as the names of claims, are compared too. Package crddiff defines the classes of
// changes. A new or stricter dependency, a new permission and a new constraint for Crossplane need care; removed
// objects and capabilities are breaking or need care, depending on their kind.
package packagediff

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// A Diff is the difference between two versions of a package.
type Diff struct {
	// Class is the highest class of all changes.
	Class crddiff.Class `json:"class"`
	// Metadata are the changes to the metadata, in the order name, Crossplane, dependencies, capabilities,
	// permissions, runtime image.
	Metadata []Change `json:"metadata,omitempty"`
	// CRDs and XRDs are the changes to CRDs and XRDs.
	CRDs crddiff.Diff `json:"crds"`
	XRDs crddiff.Diff `json:"xrds"`
	// Objects are the changes to all other objects, ordered by kind and name.
	Objects []Change `json:"objects,omitempty"`
}

// Empty reports whether there is no difference.
func (d Diff) Empty() bool {
	kinds := func(k crddiff.Diff) bool { return len(k.Added)+len(k.Removed)+len(k.Changed) == 0 }
	return len(d.Metadata) == 0 && len(d.Objects) == 0 && kinds(d.CRDs) && kinds(d.XRDs)
}

// A Change is a difference outside of the schemas of CRDs and XRDs.
type Change struct {
	Class crddiff.Class `json:"class"`
	// Subject is the changed part, such as "dependency registry.example.org/acme/provider" or "Composition network".
	Subject string `json:"subject"`
	// From and To are the old and the new value; empty if there is none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Reason states the effect in one sentence without a full stop.
	Reason string `json:"reason"`
}

// String returns the change in one line: class, subject, reason and values.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s: %s%s", c.Class, c.Subject, c.Reason, crddiff.Values(c.From, c.To))
}

// Compare compares two versions of a package. It reports an error if an object cannot be read.
func Compare(from, to *xpkg.Package) (Diff, error) {
	a, err := contentOf(from)
	if err != nil {
		return Diff{}, err
	}
	b, err := contentOf(to)
	if err != nil {
		return Diff{}, err
	}
	d := Diff{Metadata: compareMetadata(from.Meta, to.Meta), Objects: compareObjects(a.others, b.others)}
	if d.CRDs, err = crddiff.CRDs(a.crds, b.crds); err != nil {
		return Diff{}, err
	}
	if d.XRDs, err = compareXRDs(a.xrds, b.xrds); err != nil {
		return Diff{}, err
	}
	if err := errors.Join(addLabels(&d.CRDs, a.crds, b.crds), addLabels(&d.XRDs, a.xrds, b.xrds)); err != nil {
		return Diff{}, err
	}
	d.Class = max(d.CRDs.Class(), d.XRDs.Class())
	for _, c := range slices.Concat(d.Metadata, d.Objects) {
		d.Class = max(d.Class, c.Class)
	}
	return d, nil
}

// Kinds returns the changes of the CRDs and XRDs in both versions, ordered by name.
func Kinds(from, to *xpkg.Package) ([]crddiff.ChangedCRD, error) {
	d, err := Compare(from, to)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(d.CRDs.Changed, d.XRDs.Changed)
	slices.SortFunc(all, func(a, b crddiff.ChangedCRD) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// content is the content of a package, grouped by the kind of comparison. CRDs and XRDs are JSON by name.
type content struct {
	crds, xrds map[string][]byte
	others     map[object][]byte
}

type object struct{ kind, name string }

func contentOf(pkg *xpkg.Package) (content, error) {
	c := content{crds: map[string][]byte{}, xrds: map[string][]byte{}, others: map[object][]byte{}}
	for _, o := range pkg.Objects {
		text, err := o.JSON()
		if err != nil {
			return content{}, err
		}
		switch o.GVK.Kind {
		case "CustomResourceDefinition":
			if o.GVK.Version == "v1beta1" {
				text, err = crd.FromV1Beta1(text)
			}
			c.crds[o.Name] = text
		case "CompositeResourceDefinition":
			c.xrds[o.Name] = text
		default:
			c.others[object{o.GVK.Kind, o.Name}] = text
		}
		if err != nil {
			return content{}, fmt.Errorf("%s %s: %w", o.GVK.Kind, o.Name, err)
		}
	}
	return c, nil
}

// compareObjects compares objects by their canonical JSON.
func compareObjects(from, to map[object][]byte) []Change {
	var out []Change
	for o, was := range from {
		next, exists := to[o]
		subject := o.kind + " " + o.name
		switch {
		case !exists && o.kind == "Composition":
			out = append(out, Change{
				crddiff.Breaking, subject, "", "",
				"the composition was removed; composite resources that use it are no longer reconciled",
			})
		case !exists:
			out = append(out, Change{crddiff.Care, subject, "", "", "the object was removed"})
		case !bytes.Equal(was, next):
			out = append(out, Change{crddiff.Care, subject, "", "", "the object changed"})
		}
	}
	for o := range to {
		if _, existed := from[o]; !existed {
			class := crddiff.Safe
			if strings.HasSuffix(o.kind, "WebhookConfiguration") {
				class = crddiff.Care
			}
			out = append(out, Change{class, o.kind + " " + o.name, "", "", "the object was added"})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Subject, b.Subject) })
	return out
}

// compareMetadata compares the metadata objects.
func compareMetadata(a, b xpkg.Meta) []Change {
	var out []Change
	add := func(class crddiff.Class, subject, from, to, reason string) {
		out = append(out, Change{class, subject, from, to, reason})
	}
	if a.Kind != b.Kind {
		add(
			crddiff.Breaking, "kind", string(a.Kind), string(b.Kind),
			"the kind of the package changed, so it cannot be updated in place",
		)
	}
	if a.Crossplane != b.Crossplane {
		class, reason := crddiff.Care, "the required version of Crossplane changed"
		if b.Crossplane == "" {
			class, reason = crddiff.Safe, "every version of Crossplane is accepted"
		}
		add(class, "crossplane", a.Crossplane, b.Crossplane, reason)
	}
	out = append(out, compareDependencies(a.DependsOn, b.DependsOn, "dependency")...)
	out = append(
		out, compareDependencies(kindDependencies(a.Kinds), kindDependencies(b.Kinds), "dependency on the kind")...,
	)
	out = append(out, compareDependencies(a.Optional, b.Optional, "optional dependency")...)
	for _, c := range a.Capabilities {
		if !b.HasCapability(c) {
			add(crddiff.Care, "capability "+c, c, "", "the capability was removed")
		}
	}
	for _, c := range b.Capabilities {
		if !a.HasCapability(c) {
			add(crddiff.Safe, "capability "+c, "", c, "the capability was added")
		}
	}
	out = append(out, comparePermissions(a.PermissionRequests, b.PermissionRequests)...)
	if a.ControllerImage != b.ControllerImage {
		add(crddiff.Safe, "runtime image", a.ControllerImage, b.ControllerImage, "the runtime image changed")
	}
	return out
}

// kindDependencies returns required kinds in the form of dependencies, to compare them.
func kindDependencies(kinds []dependency.KindRef) []dependency.Dependency {
	var out []dependency.Dependency
	for _, k := range kinds {
		out = append(out, dependency.Dependency{Package: k.WithoutVersion(), Constraint: k.Version})
	}
	return out
}

// compareDependencies compares dependencies by package.
func compareDependencies(from, to []dependency.Dependency, subject string) []Change {
	constraints := func(all []dependency.Dependency) map[string]string {
		out := map[string]string{}
		for _, d := range all {
			out[d.Package] = d.Constraint
		}
		return out
	}
	a, b := constraints(from), constraints(to)
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(a)) {
		next, exists := b[name]
		switch {
		case !exists:
			out = append(out, Change{crddiff.Safe, subject + " " + name, a[name], "", "the dependency was removed"})
		case next != a[name]:
			out = append(out, Change{crddiff.Care, subject + " " + name, a[name], next, "the required versions changed"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, existed := a[name]; !existed {
			out = append(out, Change{crddiff.Care, subject + " " + name, "", b[name], "the dependency was added"})
		}
	}
	return out
}

// comparePermissions compares requested permissions rule by rule.
func comparePermissions(from, to []rbacv1.PolicyRule) []Change {
	texts := func(rules []rbacv1.PolicyRule) (out []string) {
		for _, r := range rules {
			out = append(out, ruleText(r))
		}
		return out
	}
	a, b := texts(from), texts(to)
	var out []Change
	for _, r := range b {
		if !slices.Contains(a, r) {
			out = append(out, Change{crddiff.Care, "permission", "", r, "the runtime requests a permission"})
		}
	}
	for _, r := range a {
		if !slices.Contains(b, r) {
			out = append(out, Change{crddiff.Safe, "permission", r, "", "the runtime no longer requests a permission"})
		}
	}
	return out
}

// ruleText returns a rule as one line, independent of the order of its elements.
func ruleText(r rbacv1.PolicyRule) string {
	list := func(s []string) string { return strings.Join(slices.Sorted(slices.Values(s)), ",") }
	if len(r.NonResourceURLs) > 0 {
		return list(r.Verbs) + " " + list(r.NonResourceURLs)
	}
	groups := slices.Clone(r.APIGroups)
	for i, g := range groups {
		if g == "" {
			groups[i] = "core"
		}
	}
	s := list(r.Verbs) + " " + list(r.Resources) + " in " + list(groups)
	if len(r.ResourceNames) > 0 {
		s += " named " + list(r.ResourceNames)
	}
	return s
}
