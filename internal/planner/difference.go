package planner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// Difference is an input or a change that differs from the plan.
type Difference struct {
	What string `json:"what"`
	Was  string `json:"was"`
	Is   string `json:"is"`
}

// absent is the value of an input that does not exist.
const absent = "absent"

// Compare returns the differences between a plan and a new plan of the same operation, in the preconditions and in the
// changes. It does not compare warnings, permissions for objects of others, which follow from the added ones, nor
// rewritten image names, because the digest identifies the content.
func Compare(planned, now *Plan) []Difference {
	var d differences
	d.text("the operation", string(planned.Operation), string(now.Operation))
	d.text("the cluster", string(planned.Cluster), string(now.Cluster))
	d.packages(planned, now)
	d.text("whether the package becomes explicitly installed", fmt.Sprint(planned.Adopts), fmt.Sprint(now.Adopts))
	d.text(
		"the list of objects that the package may adopt", strings.Join(planned.Adoptions, ", "),
		strings.Join(now.Adoptions, ", "),
	)
	d.text(
		"the list of what the package may break", strings.Join(planned.Accepts, ", "), strings.Join(now.Accepts, ", "),
	)
	d.text("the kinds", planned.Kinds.String(), now.Kinds.String())
	d.text("the choice of kinds", choicesOf(planned.Kinds), choicesOf(now.Kinds))
	d.content(planned.Content, now.Content)
	was, is := planned.Preconditions, now.Preconditions
	d.text("the UID of the package", string(was.UID), string(is.UID))
	d.json("the spec of the package", was.Spec, is.Spec)
	d.text("the generation of the package", number(was.Generation), number(is.Generation))
	d.text("the annotations that choose kinds", was.Kinds, is.Kinds)
	each(&d, was.Revisions, is.Revisions, func(r Revision) (string, string) {
		return "revision " + r.Name, fmt.Sprintf("%s with number %d", r.State, r.Number)
	})
	each(&d, was.Installed, is.Installed, func(i Installed) (string, string) {
		return "the installed " + v1.ObjectName(i.Kind, i.Name), (&Version{i.Reference, i.Digest}).String()
	})
	each(&d, planned.Revisions, now.Revisions, func(r RevisionChange) (string, string) {
		return "the change of revision " + r.Name, fmt.Sprintf("%s to %s with number %d", r.Action, r.State, r.Number)
	})
	each(&d, planned.FieldChanges, now.FieldChanges, func(c SpecChange) (string, string) {
		return "the change of " + c.Field, c.Was + " to " + c.Is
	})
	each(&d, planned.RuntimeChanges, now.RuntimeChanges, func(c SpecChange) (string, string) {
		return "the change of " + c.Field + " in the runtime configuration", c.Was + " to " + c.Is
	})
	d.permissions(planned.Permissions, now.Permissions)
	each(&d, planned.Findings, now.Findings, func(f install.Finding) (string, string) {
		return "the result of the check " + string(f.Stage), strings.TrimSpace(f.Package + " " + f.Code + ": " + f.Reason)
	})
	d.text(
		"the list of webhooks for resources of others", strings.Join(planned.outside(), "; "),
		strings.Join(now.outside(), "; "),
	)
	d.objects(planned.Objects, now.Objects)
	each(&d, planned.Dependencies, now.Dependencies, func(x Dependency) (string, string) {
		return "the dependency " + x.Package, strings.TrimSpace(string(x.State) + " " + x.Installed)
	})
	each(&d, comparedParts(planned.AddedPackages),
		comparedParts(now.AddedPackages), func(b AddedPackage) (string, string) {
			ref, _, _ := strings.Cut(b.Reference, "@")
			return "the added package " + ref, b.Digest
		})
	for _, was := range planned.AddedPackages {
		for _, is := range now.AddedPackages {
			if was.Short() == is.Short() {
				d.permissions(was.Permissions, is.Permissions)
				d.objects(was.Objects, is.Objects)
			}
		}
	}
	d.text("the dependency upgrade policy", string(planned.Upgrades), string(now.Upgrades))
	each(&d, planned.Orphans, now.Orphans, func(o Orphan) (string, string) {
		return "the orphan " + v1.ObjectName(o.Kind, o.Name), o.Reference
	})
	each(&d, planned.Breaks, now.Breaks, func(b Broken) (string, string) {
		return "the broken dependency of " + v1.ObjectName(b.Kind, b.Name), b.String()
	})
	eachOr("0", &d, withoutDigests(planned.CustomResources),
		withoutDigests(now.CustomResources), func(r CustomResources) (string, string) {
			if r.Unknown != "" {
				return "the number of custom resources to delete with " + r.CRD, "unknown (" + r.Unknown + ")"
			}
			return "the number of custom resources to delete with " + r.CRD, number(r.Count)
		})
	for _, r := range now.CustomResources {
		was := planned.customResourcesOf(r.CRD)
		if was.Count == r.Count && was.Digest != "" && r.Digest != "" && was.Digest != r.Digest {
			d.text("the set of custom resources to delete with "+r.CRD, number(was.Count)+" with UIDs "+
				was.Digest, number(r.Count)+" with UIDs "+r.Digest)
		}
	}
	return d
}

// choicesOf returns the changed choices of kinds as text.
func choicesOf(k *ActiveKinds) string {
	if k == nil || len(k.Choices) == 0 {
		return ""
	}
	return fmt.Sprint(k.Choices)
}

// withoutDigests returns custom resources without their digests, which plans of former versions of xpkg do not have.
func withoutDigests(all []CustomResources) []CustomResources {
	out := slices.Clone(all)
	for i := range out {
		out[i].Digest = ""
	}
	return out
}

// comparedParts returns added packages without the changes of their kinds and without their signers, which follow from
// the digests, and without their effect on custom resources.
func comparedParts(all []AddedPackage) []AddedPackage {
	out := slices.Clone(all)
	for i := range out {
		out[i].KindChanges, out[i].Objects.Judgements, out[i].Signers = nil, nil, nil
	}
	return out
}

type differences []Difference

func (d *differences) text(what, was, is string) {
	if was != is {
		*d = append(*d, Difference{what, cmp.Or(was, absent), cmp.Or(is, absent)})
	}
}

func (d *differences) packages(planned, now *Plan) {
	was, is := planned.Package, now.Package
	d.text("the package", was.Kind+"/"+was.Name, is.Kind+"/"+is.Name)
	d.text("the installed version", was.From.String(), is.From.String())
	d.text("the planned version", was.To.String(), is.To.String())
	before, after := was.Object, is.Object
	if planned.Operation == Update && now.Operation == Update {
		// An update writes only the spec.
		before, after = specIn(before), specIn(after)
	}
	d.json("the planned object", before, after)
}

func (d *differences) content(was, is *Content) {
	if was == nil || is == nil {
		if was != is {
			d.text("the content", was.digest(), is.digest())
		}
		return
	}
	d.text("the reference", was.Reference, is.Reference)
	d.text("the content", was.Digest, is.Digest)
}

func (c *Content) digest() string {
	if c == nil {
		return absent
	}
	return cmp.Or(c.Digest, "without a digest")
}

// String returns the reference with its digest.
func (v *Version) String() string {
	switch {
	case v == nil:
		return absent
	case v.Digest == "" || strings.HasSuffix(v.Reference, "@"+v.Digest):
		return v.Reference
	}
	return v.Reference + " (" + v.Digest + ")"
}

func (d *differences) permissions(was, is *Permissions) {
	var none Permissions
	was, is = cmp.Or(was, &none), cmp.Or(is, &none)
	d.text("the list of added permissions", describe(was.Added), describe(is.Added))
	d.text("the list of removed permissions", describe(was.Removed), describe(is.Removed))
	each(
		d, was.CompositeRoles, is.CompositeRoles,
		func(role string) (string, string) { return "the change of ClusterRole " + role, string(plan.Create) },
	)
	d.text("the list of permissions that need approval", describe(was.NeedsApproval), describe(is.NeedsApproval))
}

func describe(rules []rbacv1.PolicyRule) string {
	if len(rules) == 0 {
		return ""
	}
	lines := make([]string, len(rules))
	for i, r := range rules {
		lines[i] = rbac.Describe(r)
	}
	return strings.Join(lines, "; ") + " (" + rbac.Fingerprint(rules) + ")"
}

func (d *differences) objects(was, is plan.Plan) {
	each(d, withoutCounts(was.Changes), withoutCounts(is.Changes), func(c plan.Change) (string, string) {
		return "the change of " + string(c.Ref.Kind) + " " + c.Ref.Name, change(c)
	})
	each(d, was.Refusals, is.Refusals, func(r plan.Refusal) (string, string) {
		return "the reason for the refusal of " + r.Ref.Kind + " " + r.Ref.Name, r.Reason
	})
	d.text("the number of unchanged objects", number(int64(was.Unchanged)), number(int64(is.Unchanged)))
}

// withoutCounts returns changes without the numbers of custom resources that they migrate.
func withoutCounts(all []plan.Change) []plan.Change {
	out := slices.Clone(all)
	for i := range out {
		out[i].Migrations = slices.Clone(out[i].Migrations)
		for k := range out[i].Migrations {
			out[i].Migrations[k].Objects = 0
		}
	}
	return out
}

func change(c plan.Change) string {
	if c.ResourceVersion == "" {
		return string(c.Action)
	}
	return fmt.Sprintf("%s, with UID %s and resourceVersion %s", c.Action, c.UID, c.ResourceVersion)
}

// each compares two lists by the names of their elements. For different elements with the same name
// and text, the result contains the whole elements as JSON.
func each[T any](d *differences, was, is []T, text func(T) (name, text string)) {
	eachOr(absent, d, was, is, text)
}

// eachOr is like each, with another text than absent for an element that one of the lists lacks.
func eachOr[T any](none string, d *differences, was, is []T, text func(T) (name, text string)) {
	before, after := byName(was, text), byName(is, text)
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b, a := before[name], after[name]
		textBefore, textAfter := cmp.Or(b.text, none), cmp.Or(a.text, none)
		switch {
		case b.whole == a.whole:
		case textBefore == textAfter:
			*d = append(*d, Difference{name, cmp.Or(b.whole, absent), cmp.Or(a.whole, absent)})
		default:
			*d = append(*d, Difference{name, textBefore, textAfter})
		}
	}
}

type element struct{ text, whole string }

// byName returns the elements by name. Elements with the same name count as one.
func byName[T any](all []T, text func(T) (string, string)) map[string]element {
	out := map[string]element{}
	for _, x := range all {
		raw, err := json.Marshal(x)
		if err != nil {
			panic(err) // Elements of a Plan always marshal.
		}
		name, description := text(x)
		e := out[name]
		out[name] = element{join(e.text, description), join(e.whole, string(raw))}
	}
	return out
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + " and " + b
}

func number(n int64) string { return fmt.Sprint(n) }
