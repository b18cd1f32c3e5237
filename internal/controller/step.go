package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// ErrDependencyName is the failure of a dependency for which there is no name.
var ErrDependencyName = errcode.Code{
	Name: "DependencyName", Class: errcode.Conflict,
	Cause: "A package that another one needs cannot be installed, since packages of another repository have both names that it could have.",
	Fix:   "Install the dependency yourself under a name of your choice; it is recognized by its repository.",
}

// make carries out the changes of one step, and gives what was moved, in words: first
// what is not there yet, all at the same time, and then what moves, in order. What was
// not carried out, as after a crash, is left to the next look.
func (r *revisionReconciler) make(ctx context.Context, log *slog.Logger, parent v1.Package, changes []graph.Change) (moved []string, err error) {
	if err := r.installAll(ctx, log, parent, changes); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.Existing == nil {
			continue
		}
		did, err := r.move(ctx, log, c)
		if err != nil {
			return nil, err
		}
		if did {
			moved = append(moved, fmt.Sprintf("%s is on its way from %s to %s", c.To.Repository, c.Existing.VersionOrDigest(), c.To.ShortVersion()))
		}
	}
	return moved, nil
}

// installers is how many packages are made at the same time.
const installers = 8

// installAll makes the packages that are not there. Those that would have the same name
// are made one after the other, so that it is always the same one that gets it.
func (r *revisionReconciler) installAll(ctx context.Context, log *slog.Logger, parent v1.Package, changes []graph.Change) error {
	byName := map[string][]graph.Change{}
	var order []string
	for _, c := range changes {
		if c.Existing != nil {
			continue
		}
		name := c.Names()[0]
		if byName[name] == nil {
			order = append(order, name)
		}
		byName[name] = append(byName[name], c)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(installers)
	for _, name := range order {
		group.Go(func() error {
			for _, c := range byName[name] {
				if err := r.install(ctx, log, parent, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// install makes a package that is needed.
func (r *revisionReconciler) install(ctx context.Context, log *slog.Logger, parent v1.Package, c graph.Change) error {
	p := c.NewPackage(parent)
	for _, name := range c.Names() {
		p.SetName(name)
		p.SetResourceVersion("")
		err := r.client.Create(ctx, p)
		if err == nil {
			log.InfoContext(ctx, "dependency installed", "dependency", c.To.Repository, "name", name, "to", c.To.ShortVersion())
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("install the dependency %s: %w", c.To.Repository, err)
		}
		there := v1.NewPackage(string(c.To.Kind))
		if err := r.live.Get(ctx, client.ObjectKey{Name: name}, there); err != nil {
			return client.IgnoreNotFound(err)
		}
		if lockfile.Repository(there.PackageSpec().Package) == c.To.Repository {
			return nil // The cache is behind, or it is being deleted; the revision looks again.
		}
	}
	return ErrDependencyName.New(nil, "%s is needed, and the names %s are taken", c.To.Repository, strings.Join(c.Names(), " and "))
}

// move brings a package that was installed for others to another version. Nobody
// else's is touched, and none that somebody has moved or paused meanwhile.
func (r *revisionReconciler) move(ctx context.Context, log *slog.Logger, c graph.Change) (moved bool, err error) {
	p := v1.NewPackage(c.Existing.Kind)
	if err := r.live.Get(ctx, client.ObjectKey{Name: c.Existing.Name}, p); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	to := c.Reference()
	n, ok := graph.NodeFromPackage(p, nil)
	if !ok || !n.AutoInstalled || n.Paused || n.Requested != c.Existing.Requested || n.Requested == to { // The last was brought back from there.
		return false, nil
	}
	p.PackageSpec().Package = to
	if err := r.client.Update(ctx, p); err != nil {
		return false, fmt.Errorf("move the dependency %s: %w", p.GetName(), err)
	}
	log.InfoContext(ctx, "dependency moved", "dependency", c.To.Repository, "name", p.GetName(), "from", c.Existing.VersionOrDigest(), "to", c.To.ShortVersion())
	return true, nil
}
