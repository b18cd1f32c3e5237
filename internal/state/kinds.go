package state

import (
	"context"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// KindReader reads the kinds that an API server serves, and the metadata of CRDs.
type KindReader interface {
	Kinds(ctx context.Context, group string) ([]apply.ServedKind, error)
	Metadata(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error)
}

// A HeldKind is a kind that the API server serves, with the package that holds its CRD: the package that controls it,
// or that controls the XRD or MRD from which Crossplane created it.
type HeldKind struct {
	apply.ServedKind
	Group string
	// PackageKind and PackageName are the kind and the name of the package; empty if no package holds the CRD.
	PackageKind, PackageName string
	// Released reports that no package holds the CRD, and that a package did: its active revision does not contain the
	// CRD. The package keeps the objects and reconciles none of them.
	Released bool
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
			crds = append(crds, plan.DefinitionRef(k.Plural+"."+ref.Group))
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

// setHolder sets the package that holds the CRD with the owners, or the XRD or MRD among them.
func (h *HeldKind) setHolder(ctx context.Context, cluster KindReader, owners []metav1.OwnerReference) error {
	if at := slices.IndexFunc(owners, isDefinition); at >= 0 {
		definition := plan.Ref{APIVersion: owners[at].APIVersion, Kind: owners[at].Kind, Name: owners[at].Name}
		live, err := cluster.Metadata(ctx, []plan.Ref{definition})
		if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
			return err
		}
		owners = slices.Concat(owners, live[definition].Owners)
	}
	packages := slices.DeleteFunc(slices.Clone(owners), func(o metav1.OwnerReference) bool { return !isPackage(o) })
	if at := slices.IndexFunc(packages, isController); at >= 0 {
		h.PackageKind, h.PackageName = packages[at].Kind, packages[at].Name
	} else if len(packages) > 0 {
		h.setFormerHolder(packages[0], owners)
	}
	return nil
}

// setFormerHolder sets the package that owns a CRD without controlling it. With another package manager, revisions
// control objects, and the package is an owner.
func (h *HeldKind) setFormerHolder(owner metav1.OwnerReference, owners []metav1.OwnerReference) {
	if slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return isController(o) && isRevision(o) }) {
		h.PackageKind, h.PackageName = owner.Kind, owner.Name
		return
	}
	h.Released = true
}

func isController(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }

func isPackage(o metav1.OwnerReference) bool {
	return strings.HasPrefix(o.APIVersion, v1.Group+"/") && slices.Contains(v1.PackageKinds(), o.Kind)
}

func isRevision(o metav1.OwnerReference) bool {
	return strings.HasPrefix(o.APIVersion, v1.Group+"/") &&
		slices.Contains(v1.PackageKinds(), strings.TrimSuffix(o.Kind, "Revision"))
}

// isDefinition reports whether an owner is an object from which Crossplane creates a CRD.
func isDefinition(o metav1.OwnerReference) bool {
	return strings.HasPrefix(o.APIVersion, "apiextensions.crossplane.io/") &&
		slices.Contains([]string{"CompositeResourceDefinition", "ManagedResourceDefinition"}, o.Kind)
}

// GroupHolders returns the CRDs of an API group that exist in the cluster by their names, with the repositories of the
// packages that hold them, for [provide.Finder]. Repository returns the repository of an installed package, or "".
func GroupHolders(
	ctx context.Context, cluster KindReader, group string, repository func(kind, name string) string,
) (map[string]string, error) {
	held, err := FindKinds(ctx, cluster, dependency.KindRef{Name: dependency.AllKinds, Group: group})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, h := range held {
		name := ""
		if h.PackageName != "" {
			name = repository(h.PackageKind, h.PackageName)
		}
		out[h.Plural+"."+group] = name
	}
	return out, nil
}

// A KindBinding are the packages that satisfy the kinds that a package requires.
type KindBinding struct {
	// Selected are dependencies on the packages, each with its kind.
	Selected []dependency.Dependency
	// Missing are the kinds that no recorded and no installed package provides.
	Missing []dependency.KindRef
}

// BindKinds returns the packages that provide the required kinds: the recorded ones, and otherwise the packages that
// hold the CRDs. It selects no other package. A kind of a CRD that never belonged to a package, or that the package
// itself defines, needs none; the kind of a released CRD is missing. Repository returns the repository of an installed
// package, or "".
func BindKinds(
	ctx context.Context, cluster KindReader, pkg *xpkg.Package, recorded []dependency.Dependency,
	repository func(kind, name string) string,
) (KindBinding, error) {
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
		if len(own) == 0 && areReleased(held) {
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

// addsKind reports whether a kind of a package is missing among the recorded kinds of a group: the package was recorded
// while not all of its CRDs existed, or has more kinds now. Another package adds no kinds.
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

// ReleasedKinds returns the selected dependencies whose kinds the API server serves although no package contains their
// CRDs any more: nothing reconciles the objects.
func ReleasedKinds(
	ctx context.Context, cluster KindReader, selected []dependency.Dependency,
) ([]dependency.Dependency, error) {
	var out []dependency.Dependency
	for _, d := range selected {
		kind, err := dependency.ParseKindRef(d.CRD)
		if err != nil {
			continue
		}
		held, err := FindKinds(ctx, cluster, kind)
		if err != nil {
			return nil, err
		}
		if len(held) > 0 && areReleased(held) {
			out = append(out, d)
		}
	}
	return out, nil
}

// areReleased reports whether all of some kinds are released.
func areReleased(held []HeldKind) bool {
	return !slices.ContainsFunc(held, func(h HeldKind) bool { return !h.Released })
}

// SelectAgain is the remedy for a selected package that does not provide its kind.
const SelectAgain = "Update the package that provides the kind to a version that serves it, with `xpkg update`, or remove the annotation " +
	graph.AnnotationKindProviders + " to select another package."

// KindReleased returns the error KindNotProvided for a dependency of ReleasedKinds.
func KindReleased(d dependency.Dependency) *errcode.Error {
	return provide.ErrNotProvided.New(
		nil, "%s was selected for %s, and its installed version does not contain the kind", d.Package, d.CRD,
	).WithDo(SelectAgain)
}

// KindNotServed returns the error KindNotProvided for a kind that the API server does not serve although packages were
// selected for kinds.
func KindNotServed(kind dependency.KindRef, selected []dependency.Dependency) *errcode.Error {
	var texts []string
	for _, d := range selected {
		texts = append(texts, d.Package+" was selected for "+d.CRD)
	}
	if len(texts) == 0 {
		texts = []string{"no package holds it"}
	}
	return provide.ErrNotProvided.New(errors.New(strings.Join(texts, "; ")), "the API server does not serve %s", kind).
		WithDo(SelectAgain)
}

// UnservedKinds returns the required kinds that the API server does not serve in the required version.
func UnservedKinds(
	ctx context.Context, cluster KindReader, required []dependency.KindRef,
) ([]dependency.KindRef, error) {
	var out []dependency.KindRef
	for _, ref := range required {
		served, err := cluster.Kinds(ctx, ref.Group)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(served, func(k apply.ServedKind) bool {
			return ref.Matches(ref.Group, k.Kind, k.Plural, k.Singular) &&
				(ref.Version == "" || slices.Contains(k.Versions, ref.Version))
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
