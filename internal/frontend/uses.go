package frontend

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Uses are the uses of Providers by objects.
type Uses struct {
	// Installs are all install objects.
	Installs []*Object
	// Kinds are the kinds of the other objects, as far as a Provider holds them.
	Kinds []UsedKind
}

// UsedKind is a kind that an object defines or depends on, and that a Provider holds.
type UsedKind struct {
	Object   *Object
	Kind     dependency.KindRef
	Provider string
}

// Uses returns the uses by objects of the kinds that the API server serves. With an error, it returns those that it has
// read.
func (a *API) Uses(ctx context.Context, kinds state.KindReader, reader client.Reader) (Uses, error) {
	var uses Uses
	if a == nil {
		return uses, nil
	}
	served, err := kinds.Kinds(ctx, a.GroupVersion.Group)
	if err != nil {
		return uses, err
	}
	known := map[dependency.KindRef][]state.HeldKind{}
	for _, k := range served {
		if !slices.Contains(a.Kinds, k.Kind) {
			continue
		}
		all, err := a.List(ctx, reader, k.Kind)
		if err != nil {
			return uses, err
		}
		uses.Installs = append(uses.Installs, Installs(all)...)
		for _, o := range all {
			if err := uses.addKinds(ctx, kinds, o, known); err != nil {
				return uses, err
			}
		}
	}
	return uses, nil
}

// addKinds adds the kinds of an object that Providers hold. Known are the kinds that were looked up.
func (u *Uses) addKinds(
	ctx context.Context, kinds state.KindReader, o *Object, known map[dependency.KindRef][]state.HeldKind,
) error {
	for _, kind := range o.Kinds {
		held, found := known[kind]
		if !found {
			var err error
			if held, err = state.FindKinds(ctx, kinds, kind); err != nil {
				return err
			}
			known[kind] = held
		}
		for _, h := range held {
			use := UsedKind{Object: o, Kind: kind, Provider: h.PackageName}
			if h.PackageKind == v1.ProviderKind && h.Serves(kind.Version) && !slices.Contains(u.Kinds, use) {
				u.Kinds = append(u.Kinds, use)
			}
		}
	}
	return nil
}

// Of reports whether an object uses a Provider.
func (u Uses) Of(provider string) bool {
	return slices.ContainsFunc(u.Installs, func(in *Object) bool { return in.Provider == provider }) ||
		slices.ContainsFunc(u.Kinds, func(k UsedKind) bool { return k.Provider == provider })
}

// Mark marks the nodes of the Providers that objects use.
func (u Uses) Mark(nodes []graph.Node) {
	for i := range nodes {
		nodes[i].InUse = nodes[i].InUse || nodes[i].Kind == v1.ProviderKind && u.Of(nodes[i].Name)
	}
}
