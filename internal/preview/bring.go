package preview

import (
	"context"
	"fmt"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/failure"
)

// bring finds out what the package manager would install with a package, and move with
// it. That there is no solution is a failure: the package could never become healthy.
// That registries cannot be asked from here is none, and is noted.
func (pl *Planner) bring(ctx context.Context, s *situation, p v1.Package, graph *closure.Graph, out *Plan) ([]closure.Change, error) {
	out.Upgrades = pl.Upgrades
	policy := pl.upgrades(s)
	wanting := slices.ContainsFunc(out.Dependencies, func(d Dependency) bool {
		return d.State == closure.Missing || d.State == closure.Unfit && policy != closure.None
	})
	if pl.Registry == nil || !wanting {
		return nil, nil
	}
	own, result, err := graph.Resolve(ctx, graph.Resolver(pl.Registry, pl.finder(), p), p.PackageKind(), p.GetName(), policy)
	switch {
	case err == nil:
	case failure.From(err).Code.Class == failure.Conflict:
		return nil, err
	default:
		out.warn(fmt.Sprintf("What would be installed with it is not known: %v.", err))
		return nil, nil
	}
	changes := own.Changes(result)
	for _, c := range changes {
		b := Brought{Kind: string(c.To.Kind), Reference: c.Reference(), Digest: c.To.Digest.String(), For: c.For}
		if c.Object != nil {
			b.Kind, b.Name, b.From = c.Object.Kind, c.Object.Name, c.Object.Reference()
		}
		out.Brings = append(out.Brings, b)
	}
	return changes, nil
}

// upgrades is the policy of the package manager, as far as it is known.
func (pl *Planner) upgrades(s *situation) closure.Policy {
	for _, said := range []closure.Policy{pl.Upgrades, closure.Policy(s.lock.Annotations[closure.AnnotationUpgrades])} {
		if slices.Contains(closure.Policies(), said) {
			return said
		}
	}
	return closure.None
}
