// Package generation keeps the history of the installed packages as a whole. A generation is the set of all packages at
// one time, with their settings and the digests of their contents; the package manager records one after each change.
//
// Generations are stored as ControllerRevisions of the namespace of the manager: the API server rejects changes of
// their content, and tools for backups include them.
package generation

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Generation is the set of installed packages at one time.
type Generation struct {
	// Number counts the generations of a control plane, from 1.
	Number int64 `json:"number"`
	// Healthy reports whether all packages have been healthy at once since.
	Healthy bool `json:"healthy"`
	Content
}

// Content is what is recorded of a generation when it begins.
type Content struct {
	Time time.Time `json:"time"`
	// By are the users or clients that made the change, as far as they are known.
	By []string `json:"by,omitempty"`
	// Why are the reasons that they gave: the command, or the annotation kubernetes.io/change-cause.
	Why []string `json:"why,omitempty"`
	// Transactions are the names of the transactions that made the change.
	Transactions []string `json:"transactions,omitempty"`
	// Packages are sorted by kind and name.
	Packages []Package `json:"packages"`
}

// Package is a package of a generation.
type Package struct {
	v1alpha1.PackageName `json:",inline"`
	// Digest of the content; zero if it was not known.
	Digest oci.Digest `json:"digest,omitzero"`
	// Labels and Annotations are those that decide about the package; see [Labels] and [Annotations].
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Spec of the package. A Configuration has no runtime fields.
	Spec v1.ProviderSpec `json:"spec"`
}

// Labels returns the labels of a package that a return to its former state restores.
func Labels() []string { return []string{graph.LabelAutoInstalled} }

// Annotations returns the annotations of a package that a return to its former state restores: for whom it was
// installed, and its consents.
func Annotations() []string {
	return []string{
		graph.AnnotationRequiredBy, graph.AnnotationKindProviders, webhooks.AnnotationAllowed, revision.AnnotationAdopt,
		revision.AnnotationAcceptBreaks, activation.AnnotationKinds, activation.AnnotationDeactivate,
	}
}

// Of returns packages as a generation contains them.
func Of(packages []v1.Package) []Package {
	out := []Package{}
	for _, p := range packages {
		out = append(out, Package{
			PackageName: v1alpha1.PackageName{Kind: p.PackageKind(), Name: p.GetName()}, Digest: graph.CurrentDigest(p),
			Labels: only(p.GetLabels(), Labels()), Annotations: only(p.GetAnnotations(), Annotations()),
			Spec: inventory.SpecOf(p),
		})
	}
	slices.SortFunc(out, func(a, b Package) int { return compare(a.PackageName, b.PackageName) })
	return out
}

func compare(a, b v1alpha1.PackageName) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// only returns the entries of a map with the given keys, or nil.
func only(all map[string]string, keys []string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool { return !slices.Contains(keys, key) })
	if len(out) == 0 {
		return nil
	}
	return out
}

// Change is the difference of one package between two generations.
type Change struct {
	v1alpha1.PackageName
	// From and To are the package in each of them; nil if it is not installed.
	From, To *Package
}

// Changes returns the packages that differ, sorted by kind and name.
func Changes(from, to []Package) []Change {
	var out []Change
	index := func(all []Package) map[v1alpha1.PackageName]*Package {
		m := map[v1alpha1.PackageName]*Package{}
		for i := range all {
			m[all[i].PackageName] = &all[i]
		}
		return m
	}
	was, is := index(from), index(to)
	for name, p := range was {
		if now := is[name]; now == nil || !p.equals(now) {
			out = append(out, Change{name, p, now})
		}
	}
	for name, p := range is {
		if was[name] == nil {
			out = append(out, Change{name, nil, p})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return compare(a.PackageName, b.PackageName) })
	return out
}

func (p *Package) equals(other *Package) bool {
	return p.Digest == other.Digest && maps.Equal(p.Labels, other.Labels) &&
		maps.Equal(p.Annotations, other.Annotations) && equality.Semantic.DeepEqual(p.Spec, other.Spec)
}

// String describes a change in one line, such as "provider/nop v0.2.1 -> v0.3.0".
func (c Change) String() string {
	switch {
	case c.From == nil:
		return c.To.Short() + " " + c.To.version() + " installed"
	case c.To == nil:
		return c.From.Short() + " " + c.From.version() + " uninstalled"
	}
	name := c.To.Short()
	from, to := c.From.version(), c.To.version()
	if c.From.Digest != c.To.Digest && from == to {
		from, to = c.From.Digest.Short(), c.To.Digest.Short()
	}
	if oci.RepositoryName(c.From.Spec.Package) != oci.RepositoryName(c.To.Spec.Package) {
		from, to = c.From.Spec.Package, c.To.Spec.Package
	}
	out := name + " " + to
	if from != to {
		out = name + " " + from + " -> " + to
	}
	if settings := c.Settings(); len(settings) > 0 {
		out += " (" + strings.Join(settings, ", ") + ")"
	}
	return out
}

// Settings returns the names of the fields of the spec other than the reference, of the labels and of the annotations
// in which a package differs.
func (c Change) Settings() []string {
	if c.From == nil || c.To == nil {
		return nil
	}
	was, is := c.From.settings(), c.To.settings()
	names := map[string]bool{}
	for _, m := range []map[string]any{was, is} {
		for name := range m {
			if !equality.Semantic.DeepEqual(was[name], is[name]) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// settings returns the fields of the spec other than the reference, the labels and the annotations, by name.
func (p *Package) settings() map[string]any {
	spec := p.Spec
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return nil // A spec always encodes.
	}
	delete(out, "package")
	for _, m := range []map[string]string{p.Labels, p.Annotations} {
		for key, value := range m {
			out[key] = value
		}
	}
	return out
}

// Short returns the name of the package in a command line, such as "provider/nop".
func (p *Package) Short() string { return strings.ToLower(p.Kind) + "/" + p.Name }

// Reference returns the reference of the package with the digest of its content, or "" for no package.
func (p *Package) Reference() string {
	if p == nil {
		return ""
	}
	ref, err := oci.ParseReference(p.Spec.Package, oci.ParseOptions{})
	if err != nil || p.Digest.IsZero() {
		return p.Spec.Package // A name in the package cache, or content that is not known.
	}
	return ref.WithDigest(p.Digest).String()
}

// version returns the tag of a package, or the start of its digest.
func (p *Package) version() string { return inventory.ShortVersion(p.Spec.Package) }
