package planner

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// markForeign adds to the permissions in the plan those to write objects that neither the package itself nor one of its
// dependencies defines: of the planned package, and of the packages that are installed or moved for it.
func (pl *Planner) markForeign(ctx context.Context, s *clusterState, p v1.Package, changes []graph.Change, out *Plan) {
	after := graph.New(graph.After(s.graph.Nodes(), changes), s.place)
	mark := func(repository string, permissions *Permissions) {
		if permissions != nil {
			permissions.Foreign = pl.foreign(ctx, s, after, repository, permissions.requestedForeign, out)
		}
	}
	mark(oci.RepositoryName(p.PackageSpec().Package), out.Permissions)
	for i, c := range changes {
		mark(c.To.Repository, out.AddedPackages[i].Permissions)
	}
}

// foreign returns the rules without the API groups that the dependencies of a package define. It reads their content only
// while rules are left.
func (pl *Planner) foreign(ctx context.Context, s *clusterState, g *graph.Graph, repository string, rules []rbacv1.PolicyRule, out *Plan) []rbacv1.PolicyRule {
	reached := []string{g.Name(repository)}
	for i := 0; i < len(reached) && len(rules) > 0; i++ {
		n, ok := g.Find(reached[i])
		if !ok {
			continue
		}
		for _, d := range n.Dependencies {
			if !slices.Contains(reached, d.Package) {
				reached = append(reached, d.Package)
			}
		}
		if i == 0 {
			continue // The groups of the package itself are not in the rules.
		}
		groups, err := pl.groupsOf(ctx, s, n)
		if err != nil {
			out.warn(fmt.Sprintf("The API groups that %s defines are not known: %v.", n.Reference(), err))
		}
		rules = rbac.Foreign(rules, groups)
	}
	return rules
}

// groupsOf returns the API groups of the kinds that a package defines.
func (pl *Planner) groupsOf(ctx context.Context, s *clusterState, n graph.Node) ([]string, error) {
	pkg := s.contents.Known[n.Repository]
	if pkg == nil {
		installed, err := s.installed(ctx, n.Kind, n.Name)
		if err == nil {
			pkg, err = pl.readCurrent(ctx, installed)
		}
		if err != nil {
			return nil, err
		}
	}
	objects, err := desired.Of(pkg, desired.Options{})
	if err != nil {
		return nil, err
	}
	return groupsIn(objects.Defined()), nil
}

// groupsIn returns the API groups of resources.
func groupsIn(resources []schema.GroupResource) []string {
	groups := make([]string, len(resources))
	for i, r := range resources {
		groups[i] = r.Group
	}
	return groups
}
