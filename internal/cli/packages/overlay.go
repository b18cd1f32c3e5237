package packages

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// overlayReader is a cluster in which some packages are as they will be.
type overlayReader struct {
	client.Reader
	packages []v1.Package
}

// List implements client.Reader.
func (f *overlayReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := f.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	switch l := list.(type) {
	case *v1.ProviderList:
		l.Items = overlay(l.Items, f.packages)
	case *v1.ConfigurationList:
		l.Items = overlay(l.Items, f.packages)
	case *v1.FunctionList:
		l.Items = overlay(l.Items, f.packages)
	}
	return nil
}

// overlay puts packages of one kind in the place of those with their names, or beside
// them.
func overlay[T any, P interface {
	*T
	v1.Package
}](items []T, packages []v1.Package) []T {
	for _, p := range packages {
		wanted, ok := p.(P)
		if !ok {
			continue
		}
		found := false
		for i := range items {
			if P(&items[i]).GetName() == p.GetName() {
				items[i], found = *wanted, true
			}
		}
		if !found {
			items = append(items, *wanted)
		}
	}
	return items
}
