package state

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Uses are the uses of Providers by objects of the first generation.
type Uses struct {
	// Installs are all install objects. Their status names the Provider.
	Installs []packagesv1alpha1.Install
	// Kinds are the kinds of the Packages that users created, as far as a Provider holds them.
	Kinds []UsedKind
}

// UsedKind is a kind that a Package of a user defines or depends on, and that a Provider holds.
type UsedKind struct {
	Package  *packagesv1alpha1.Package
	Kind     dependency.KindRef
	Provider string
}

// ReadUses returns the uses of the kinds that the API server serves. With an error, it returns those that it has read.
func ReadUses(ctx context.Context, kinds KindReader, reader client.Reader) (Uses, error) {
	var uses Uses
	served, err := kinds.Kinds(ctx, packagesv1alpha1.Group)
	if err != nil {
		return uses, err
	}
	for _, k := range served {
		if k.Kind == packagesv1alpha1.PackageKind {
			if err := uses.readPackages(ctx, kinds, reader); err != nil {
				return uses, err
			}
			continue
		}
		all, err := ListInstalls(ctx, reader, k.Kind)
		if err != nil {
			return uses, err
		}
		uses.Installs = append(uses.Installs, all...)
	}
	return uses, nil
}

// readPackages adds the kinds of the Packages that users created.
func (u *Uses) readPackages(ctx context.Context, kinds KindReader, reader client.Reader) error {
	all, err := ListObjects(ctx, reader, packagesv1alpha1.PackageKind)
	if err != nil {
		return err
	}
	known := map[dependency.KindRef][]HeldKind{}
	for _, o := range all {
		p := o.(*packagesv1alpha1.Package)
		for _, kind := range kindsOf(p) {
			held, found := known[kind]
			if !found {
				if held, err = FindKinds(ctx, kinds, kind); err != nil {
					return err
				}
				known[kind] = held
			}
			for _, h := range held {
				use := UsedKind{Package: p, Kind: kind, Provider: h.PackageName}
				if h.PackageKind == v1.ProviderKind && h.Serves(kind.Version) && !slices.Contains(u.Kinds, use) {
					u.Kinds = append(u.Kinds, use)
				}
			}
		}
	}
	return nil
}

// kindsOf returns the kinds that a Package defines and depends on. A name that is no kind of a custom resource is ignored.
func kindsOf(p *packagesv1alpha1.Package) []dependency.KindRef {
	var out []dependency.KindRef
	add := func(text string) {
		if k, err := dependency.ParseKindRef(text); err == nil {
			out = append(out, k)
		}
	}
	for _, k := range p.Spec.CRDs {
		gvk := schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
		add(dependency.KindRef{Name: gvk.Kind, Group: gvk.Group, Version: gvk.Version}.String())
	}
	for _, d := range p.Spec.DependsOn {
		add(d.CRD)
	}
	return out
}

// Of reports whether an object uses a Provider.
func (u Uses) Of(provider string) bool {
	return slices.ContainsFunc(u.Installs, func(in packagesv1alpha1.Install) bool { return in.InstallStatus().Provider == provider }) ||
		slices.ContainsFunc(u.Kinds, func(k UsedKind) bool { return k.Provider == provider })
}

// Mark marks the nodes of the Providers that objects use.
func (u Uses) Mark(nodes []graph.Node) {
	for i := range nodes {
		nodes[i].InUse = nodes[i].InUse || nodes[i].Kind == v1.ProviderKind && u.Of(nodes[i].Name)
	}
}
