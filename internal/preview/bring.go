package preview

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// bring finds out what the package manager would install with a package. That there is
// no solution is a failure: the package could never become healthy. That registries
// cannot be asked from here is none, and is noted.
func (pl *Planner) bring(ctx context.Context, s *situation, p v1.Package, meta format.Meta, f found, out *Plan) error {
	missing := slices.ContainsFunc(out.Dependencies, func(d Dependency) bool { return d.State == closure.Missing })
	if pl.Registry == nil || !missing {
		return nil
	}
	lock, err := pl.lock(ctx)
	if err != nil {
		return err
	}
	graph := s.graph(p, f.digest, meta, lock.Packages).Component(p.PackageKind(), p.GetName())
	result, err := graph.Resolver(pl.Registry, pl.finder(), p).Resolve(ctx, graph.Request(closure.None))
	switch {
	case err == nil:
	case failure.From(err).Code.Class == failure.Conflict:
		return err
	default:
		out.warn(fmt.Sprintf("What would be installed with it is not known: %v.", err))
		return nil
	}
	for _, c := range graph.Changes(result) {
		out.Brings = append(out.Brings, Brought{
			Kind: string(c.To.Kind), Reference: closure.Node{Package: c.To}.Reference(), Digest: c.To.Digest.String(), For: c.For,
		})
	}
	return nil
}

// lock reads the Lock, which may not be there.
func (pl *Planner) lock(ctx context.Context) (*v1beta1.Lock, error) {
	lock := &v1beta1.Lock{}
	if err := pl.Reader.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, lock); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	return lock, nil
}

// graph is all packages, this one as it will be, with what the others need as the Lock
// says.
func (s *situation) graph(p v1.Package, digest oci.Digest, meta format.Meta, lock []v1beta1.LockPackage) *closure.Graph {
	var nodes []closure.Node
	if n, ok := closure.At(p, digest, meta.Dependencies()); ok {
		nodes = append(nodes, n)
	}
	for _, x := range s.others {
		needs, _ := closure.Locked(x, lock)
		if n, ok := closure.Of(x, needs); ok {
			nodes = append(nodes, n)
		}
	}
	return closure.NewGraph(nodes, nil)
}
