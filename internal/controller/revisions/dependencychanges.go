package revisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// preflightChanges refuses all changes if a package that would be installed or moved, or the package that
// requires it, contains an object that another package holds, or that another one of them contains too. It
// reads all packages first, so a package that cannot be read, or that does not work with the cluster's
// version of Crossplane, also stops all changes, and so do kinds that the packages require of each other in a cycle.
func (r *Reconciler) preflightChanges(
	ctx context.Context, in *reconciliation, seen *graph.Graph, changes []graph.Change,
) error {
	holders, err := r.holders(ctx, in, seen, changes)
	if err != nil {
		return err
	}
	group := install.Group{
		Candidate: r.candidate(in), Seen: seen, Place: state.Rewrites(ctx, r.Packages.Origins), Contents: in.contents,
		Changes: changes, Additions: r.additions(in).ReadAll(ctx, in.Package, changes), Holders: holders,
		WasHealthy: graph.WasHealthy(in.Package, in.Revision.GetName()),
	}
	for _, a := range group.Additions {
		if a.Err != nil {
			return a.Err
		}
	}
	_, refusals, err := group.Check(ctx)
	if err != nil {
		return err
	}
	for i, c := range changes {
		refused, err := r.refuseObjects(ctx, in.Package, c, group.Additions[i].Objects)
		if err != nil {
			return err
		}
		refusals = append(refusals, refused...)
	}
	if len(refusals) == 0 {
		return nil
	}
	return apply.Refused(refusals, "%s and its dependencies cannot be installed", revision.ObjectName(in.Package))
}

// additions returns a reader of the packages that dependency resolution installs or moves.
func (r *Reconciler) additions(in *reconciliation) state.AdditionReader {
	return state.AdditionReader{Packages: r.packagesFor(in), CheckCrossplane: r.Checks.Crossplane.Check,
		Installed: func(ctx context.Context, kind, name string) (v1.Package, error) {
			p := v1.NewPackage(kind)
			return p, r.API.Live.Get(ctx, client.ObjectKey{Name: name}, p)
		}}
}

// refuseObjects returns the refusals for a package that would be installed: refusals of its objects
// that users created.
func (r *Reconciler) refuseObjects(
	ctx context.Context, parent v1.Package, c graph.Change, objects []plan.Ref,
) ([]plan.Refusal, error) {
	if c.Existing != nil {
		return nil, nil
	}
	live, err := r.API.Cluster.Metadata(ctx, objects)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return nil, err
	}
	p := c.NewPackage(parent)
	p.SetName(c.Names()[0])
	refusals := revision.Requester(p, p.NewRevision(), nil).Refuse(objects, live)
	// Other owners are compared by graph.Conflicts, which knows the packages that change.
	refusals = slices.DeleteFunc(refusals, func(refusal plan.Refusal) bool { return refusal.Cause != plan.NeedsAdoption })
	c.ExplainAdoption(refusals)
	return refusals, nil
}

// holders returns the holders of the objects of all packages, except for the packages that change and the
// package itself.
func (r *Reconciler) holders(
	ctx context.Context, in *reconciliation, seen *graph.Graph, changes []graph.Change,
) (plan.Holders, error) {
	unchanged := map[reservations.Key]bool{}
	for _, n := range seen.Nodes() {
		unchanged[reservations.Key{Kind: n.Kind, Name: n.Name}] = true
	}
	delete(unchanged, reservations.KeyOf(in.Package))
	for _, c := range changes {
		if c.Existing != nil {
			delete(unchanged, reservations.Key{Kind: c.Existing.Kind, Name: c.Existing.Name})
		}
	}
	revisions, err := state.ListRevisions(ctx, r.API.Client)
	if err != nil {
		return nil, err
	}
	holders := r.Objects.Reservations.Holders(unchanged)
	for _, rev := range revisions {
		if !revision.IsActive(rev) ||
			!unchanged[reservations.Key{Kind: rev.PackageKind(), Name: rev.GetLabels()[v1.LabelPackage]}] {
			continue
		}
		for _, o := range rev.RevisionStatus().ObjectRefs {
			if o.UID != "" {
				holders.Put(rev.PackageKind()+"/"+
					rev.GetLabels()[v1.LabelPackage], plan.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name})
			}
		}
	}
	return holders, nil
}

// applyChanges installs all missing packages concurrently, and then moves the others in order. It
// returns a description of each move. If it fails or the manager crashes, the next reconciliation
// finds the remaining changes again.
func (r *Reconciler) applyChanges(
	ctx context.Context, parent v1.Package, changes []graph.Change,
) (moved []string, err error) {
	if err := r.installPackages(ctx, parent, changes); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.Existing == nil {
			continue
		}
		did, err := r.movePackage(ctx, c)
		if err != nil {
			return nil, err
		}
		if did {
			moved = append(moved, fmt.Sprintf(
				"%s is moving from %s to %s", c.To.Repository, c.Existing.VersionOrDigest(), c.To.ShortVersion(),
			))
		}
	}
	return moved, nil
}

// concurrentInstalls is the maximum number of packages that are created concurrently.
const concurrentInstalls = 8

// installPackages creates the missing packages. Packages that would have the same name are created
// in order, so that their names do not depend on the timing of the calls.
func (r *Reconciler) installPackages(ctx context.Context, parent v1.Package, changes []graph.Change) error {
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
	group.SetLimit(concurrentInstalls)
	for _, name := range order {
		group.Go(func() error {
			for _, c := range byName[name] {
				if err := r.installPackage(ctx, parent, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// installPackage creates a package under the first of its names that is free. It succeeds if the
// package exists already, and fails with ErrDependencyName if other packages have all of the names.
func (r *Reconciler) installPackage(ctx context.Context, parent v1.Package, c graph.Change) error {
	p := c.NewPackage(parent)
	for _, name := range c.Names() {
		p.SetName(name)
		p.SetResourceVersion("")
		err := r.API.Client.Create(ctx, p)
		if err == nil {
			logging.FromContext(ctx).
				InfoContext(ctx, "dependency installed", "dependency", c.To.Repository, "name", name, "to", c.To.ShortVersion())
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("install the dependency %s: %w", c.To.Repository, err)
		}
		existing := v1.NewPackage(string(c.To.Kind))
		if err := r.API.Live.Get(ctx, client.ObjectKey{Name: name}, existing); err != nil {
			return client.IgnoreNotFound(err)
		}
		if place := state.Rewrites(ctx, r.Packages.Origins); place(repositoryOf(existing)) == place(c.To.Repository) {
			// The cache is behind, or the package is being deleted; the revision retries.
			return nil
		}
	}
	return graph.ErrDependencyName.New(
		nil, "%s is required, and the names %s are taken", c.To.Repository, strings.Join(c.Names(), " and "),
	)
}

// movePackage changes the version of a package that was installed as a dependency, or that follows
// its dependents. It changes no other package, and no package that a user has changed or paused
// meanwhile.
func (r *Reconciler) movePackage(ctx context.Context, c graph.Change) (moved bool, err error) {
	p := v1.NewPackage(c.Existing.Kind)
	if err := r.API.Live.Get(ctx, client.ObjectKey{Name: c.Existing.Name}, p); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	to := c.Reference()
	n, ok := graph.NodeFromPackage(p, nil)
	// A package that already requests the version was rolled back from it.
	if !ok || !n.MayMove() || n.Requested != c.Existing.Requested || n.Requested == to {
		return false, nil
	}
	p.PackageSpec().Package = to
	if err := r.API.Client.Update(ctx, p); err != nil {
		return false, fmt.Errorf("move the dependency %s: %w", p.GetName(), err)
	}
	logging.FromContext(ctx).InfoContext(ctx, "dependency moved", "dependency", c.To.Repository, "name", p.GetName(),
		"from", c.Existing.VersionOrDigest(), "to", c.To.ShortVersion())
	return true, nil
}
