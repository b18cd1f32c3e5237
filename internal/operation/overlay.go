package operation

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// releasedCluster reads a cluster in which the objects that planned steps release have no controller.
type releasedCluster struct {
	planner.Cluster
	// owners are the owners of the released objects, and by the steps that release them.
	owners map[plan.Ref][]metav1.OwnerReference
	by     map[plan.Ref]*Step
}

// record adds the objects that the plan of a step releases, and the steps that must be carried out before it.
func (r *releasedCluster) record(s *Step) {
	s.after = nil
	for _, c := range s.Plan.Objects.Changes {
		if by := r.by[c.Ref]; by != nil {
			s.after = append(s.after, by)
		}
		if c.Action == plan.Release {
			r.owners[c.Ref], r.by[c.Ref] = c.Owners, s
		}
	}
}

// Metadata implements [planner.Cluster].
func (r *releasedCluster) Metadata(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	live, err := r.Cluster.Metadata(ctx, refs)
	for ref, owners := range r.owners {
		if l, ok := live[ref]; ok {
			l.Owners = owners
			live[ref] = l
		}
	}
	return live, err
}

// overlayReader reads a cluster in which some packages are replaced by their planned state, and others are removed.
type overlayReader struct {
	client.Reader
	packages, removed []v1.Package
}

// List implements client.Reader.
func (f *overlayReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := f.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	switch l := list.(type) {
	case *v1.ProviderList:
		l.Items = overlay(l.Items, f.packages, f.removed)
	case *v1.ConfigurationList:
		l.Items = overlay(l.Items, f.packages, f.removed)
	case *v1.FunctionList:
		l.Items = overlay(l.Items, f.packages, f.removed)
	}
	return nil
}

// overlay puts packages of one kind in the place of those with their names, or beside
// them, and leaves out the removed ones.
func overlay[T any, P interface {
	*T
	v1.Package
}](items []T, packages, removed []v1.Package) []T {
	items = slices.DeleteFunc(items, func(item T) bool {
		return slices.ContainsFunc(removed, func(p v1.Package) bool {
			gone, ok := p.(P)
			return ok && gone.GetName() == P(&item).GetName()
		})
	})
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
