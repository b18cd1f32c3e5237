package state

import (
	"context"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// KindReader reads the kinds that an API server serves, and the metadata of CRDs.
type KindReader interface {
	Kinds(ctx context.Context, group string) ([]apply.ServedKind, error)
	Metadata(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error)
}

// A HeldKind is a kind that the API server serves, with the package that holds its CRD.
type HeldKind struct {
	apply.ServedKind
	Group string
	// PackageKind and PackageName are the kind and the name of the package; empty if no package holds the CRD.
	PackageKind, PackageName string
}

// KindRef returns the kind with the API version of a reference.
func (h HeldKind) KindRef(version string) dependency.KindRef {
	return dependency.KindRef{Name: h.Kind, Group: h.Group, Version: version}
}

// Serves reports whether the API server serves the kind in an API version; empty means any.
func (h HeldKind) Serves(version string) bool {
	return version == "" || slices.Contains(h.Versions, version)
}

// FindKinds returns the kinds that a reference names and that the API server serves in any version.
func FindKinds(ctx context.Context, cluster KindReader, ref dependency.KindRef) ([]HeldKind, error) {
	served, err := cluster.Kinds(ctx, ref.Group)
	if err != nil {
		return nil, err
	}
	var out []HeldKind
	var crds []plan.Ref
	for _, k := range served {
		if ref.Matches(ref.Group, k.Kind, k.Plural, k.Singular) {
			out = append(out, HeldKind{ServedKind: k, Group: ref.Group})
			crds = append(crds, crdRef(k.Plural+"."+ref.Group))
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	live, err := cluster.Metadata(ctx, crds)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return nil, err
	}
	for i, crd := range crds {
		if err := out[i].setHolder(ctx, cluster, live[crd].Owners); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func crdRef(name string) plan.Ref {
	return plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name}
}

// setHolder sets the package among owners, or the package that owns the XRD among them.
func (h *HeldKind) setHolder(ctx context.Context, cluster KindReader, owners []metav1.OwnerReference) error {
	if o := packageOwner(owners); o != nil {
		h.PackageKind, h.PackageName = o.Kind, o.Name
		return nil
	}
	at := slices.IndexFunc(owners, func(o metav1.OwnerReference) bool { return o.Kind == "CompositeResourceDefinition" })
	if at < 0 {
		return nil
	}
	xrd := plan.Ref{APIVersion: owners[at].APIVersion, Kind: owners[at].Kind, Name: owners[at].Name}
	live, err := cluster.Metadata(ctx, []plan.Ref{xrd})
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return err
	}
	if o := packageOwner(live[xrd].Owners); o != nil {
		h.PackageKind, h.PackageName = o.Kind, o.Name
	}
	return nil
}

// packageOwner returns the package among owners, the controller first.
func packageOwner(owners []metav1.OwnerReference) *metav1.OwnerReference {
	var found *metav1.OwnerReference
	for i, o := range owners {
		if !strings.HasPrefix(o.APIVersion, v1.Group+"/") || !slices.Contains(v1.PackageKinds(), o.Kind) {
			continue
		}
		if o.Controller != nil && *o.Controller {
			return &owners[i]
		}
		if found == nil {
			found = &owners[i]
		}
	}
	return found
}

// A KindBinding are the packages that satisfy the kinds that a package requires.
type KindBinding struct {
	// Selected are dependencies on the packages, each with its kind.
	Selected []dependency.Dependency
	// Missing are the kinds that no recorded and no installed package provides.
	Missing []dependency.KindRef
}

// BindKinds returns the packages that provide the required kinds: the recorded ones, and otherwise the packages that hold
// the CRDs. It selects no other package. A kind whose CRD no package holds, or that the package itself defines, needs none.
// Repository returns the repository of an installed package, or "".
func BindKinds(ctx context.Context, cluster KindReader, pkg *xpkg.Package, recorded []dependency.Dependency, repository func(kind, name string) string) (KindBinding, error) {
	var out KindBinding
	for _, ref := range pkg.Meta.Kinds {
		if DefinesKind(pkg, ref) {
			continue
		}
		own := recordedFor(ref, recorded)
		out.Selected = append(out.Selected, own...)
		if len(own) > 0 && !ref.IsAll() {
			continue
		}
		held, err := FindKinds(ctx, cluster, ref)
		if err != nil {
			return KindBinding{}, err
		}
		if len(held) == 0 && len(own) == 0 {
			out.Missing = append(out.Missing, ref)
		}
		for _, h := range held {
			crd := ref
			if ref.IsAll() {
				if !h.Serves(ref.Version) {
					continue
				}
				crd = h.KindRef(ref.Version)
			}
			from := repository(h.PackageKind, h.PackageName)
			if from == "" || h.PackageName == "" || len(own) > 0 && !addsKind(own, from, h) {
				continue
			}
			out.Selected = append(out.Selected, dependency.Dependency{Package: from, CRD: crd.String()})
		}
	}
	return out, nil
}

// addsKind reports whether a kind of a package is missing among the recorded kinds of a group: the package was recorded while not
// all of its CRDs existed, or has more kinds now. Another package adds no kinds.
func addsKind(recorded []dependency.Dependency, repository string, h HeldKind) bool {
	known := false
	for _, d := range recorded {
		if k, err := dependency.ParseKindRef(d.CRD); err == nil && k.Matches(h.Group, h.Kind, h.Plural, h.Singular) {
			return false
		}
		known = known || d.Package == repository
	}
	return known
}

// recordedFor returns the recorded selections for a kind, or for the kinds of a group.
func recordedFor(ref dependency.KindRef, recorded []dependency.Dependency) []dependency.Dependency {
	var out []dependency.Dependency
	for _, d := range recorded {
		k, err := dependency.ParseKindRef(d.CRD)
		if err == nil && (k == ref || ref.IsAll() && k.Group == ref.Group && k.Version == ref.Version) {
			out = append(out, d)
		}
	}
	return out
}

// UnservedKinds returns the required kinds that the API server does not serve in the required version.
func UnservedKinds(ctx context.Context, cluster KindReader, required []dependency.KindRef) ([]dependency.KindRef, error) {
	var out []dependency.KindRef
	for _, ref := range required {
		served, err := cluster.Kinds(ctx, ref.Group)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(served, func(k apply.ServedKind) bool {
			return ref.Matches(ref.Group, k.Kind, k.Plural, k.Singular) && (ref.Version == "" || slices.Contains(k.Versions, ref.Version))
		}) {
			out = append(out, ref)
		}
	}
	return out, nil
}

// DefinesKind reports whether the content of a package defines a kind and serves the required version.
func DefinesKind(pkg *xpkg.Package, ref dependency.KindRef) bool {
	return provide.DefinesKind(pkg, ref)
}
