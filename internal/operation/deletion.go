package operation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// deletionSummary lists what an uninstalled package owns: its objects and its revisions. Revisions own the objects that
// Crossplane's package manager has written.
type deletionSummary struct {
	objects   []plan.Ref
	revisions []string
	// users are the objects that shared the Provider before its deletion. Their statuses name no Provider for a moment
	// after it.
	users []types.UID
}

// owned reports whether an object still has an owner that is being deleted. The garbage collector removes
// deleted owners one by one, and deletes the object with the last one.
func (l deletionSummary) owned(p v1.Package, o plan.Live) bool {
	return slices.ContainsFunc(o.Owners, l.isOwner(p))
}

// isOwner returns a function that reports whether an owner is the package or one of its revisions.
func (l deletionSummary) isOwner(p v1.Package) func(metav1.OwnerReference) bool {
	return func(r metav1.OwnerReference) bool {
		return r.UID == p.GetUID() || r.Kind == v1.RevisionKind(p.PackageKind()) && slices.Contains(l.revisions, r.Name)
	}
}

// newDeletionSummary returns the summary of a package with the objects of its revisions.
func (e *Engine) newDeletionSummary(ctx context.Context, p v1.Package) (deletionSummary, error) {
	revisions, err := inventory.ReadRevisions(ctx, e.Client, p)
	if err != nil {
		return deletionSummary{}, err
	}
	var l deletionSummary
	for _, rev := range revisions {
		l.revisions = append(l.revisions, rev.GetName())
		l.objects = append(l.objects, revision.Objects(rev)...)
	}
	for _, in := range e.sharing(ctx, p) {
		if in.Provider == p.GetName() {
			l.users = append(l.users, in.GetUID())
		}
	}
	return l, nil
}

// noteDefinitions prints that Kubernetes deletes the CRDs of a package after the package, if a command does not wait
// for it. It can take minutes for a large package. Without a plan, the CRDs that other packages own too are not known.
func (e *Engine) noteDefinitions(l deletionSummary, p v1.Package, planned *planner.Plan) {
	definitions := ""
	if planned != nil {
		n := 0
		for _, c := range planned.Objects.Changes {
			if c.Action == plan.Delete && c.Ref.Kind == plan.DefinitionKind {
				n++
			}
		}
		if n > 0 {
			definitions = wording.Count(n, "CRD") + " of " + inventory.ShortName(p)
		}
	} else if slices.ContainsFunc(l.objects, func(o plan.Ref) bool { return o.Kind == plan.DefinitionKind }) {
		definitions = "the CRDs that belong to " + inventory.ShortName(p) + " alone"
	}
	if definitions != "" {
		e.Note("Kubernetes deletes %s in the background; with --wait, the command ends when they are gone", definitions)
	}
}

// sharing returns the objects that share Providers, as far as the client may read them, if the package can be one that
// they use.
func (e *Engine) sharing(ctx context.Context, p v1.Package) []*frontend.Object {
	if p.PackageKind() != v1.ProviderKind {
		return nil
	}
	return slices.DeleteFunc(e.Frontend.All(ctx, e.Client), func(o *frontend.Object) bool { return !o.Shares })
}

// waitGone waits until the package and the objects that only it owns are deleted.
func (e *Engine) waitGone(waiting context.Context, p v1.Package, with deletionSummary, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(waiting, limit)
	defer cancel()
	progress := e.Progress()
	defer progress.End()
	progress.Set("deleting %s and its objects", inventory.ShortName(p))
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	// A package that is required is created again after its deletion, so that it is gone only if two reads agree and no
	// object waits for the manager.
	gone, decided := 0, time.Time{}
	var outage outage
	for {
		left, err := e.remains(ctx, p, with)
		if err == nil && !left {
			left, err = with.addObjects(ctx, e.Objects, p)
		}
		if err != nil && ctx.Err() == nil && !outage.tolerates(err) {
			return err
		}
		if err == nil && !left {
			if gone++; gone == 1 {
				decided = time.Now().Add(decisionTime)
			}
			if gone > 1 && (time.Now().After(decided) || !e.undecided(ctx, p, with)) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			if waiting.Err() != nil {
				return errcode.ErrInterrupted.New(nil, "stopped waiting until %s is gone", inventory.ShortName(p)).
					WithDo("The deletion continues. Check with `xpkg list` whether the package is gone.")
			}
			if gone > 0 {
				return ErrStillGoing.New(
					nil, "%s is deleted, and a PackageInstall still uses it: whether a manager creates it again is not known yet",
					inventory.ShortName(p),
				).
					WithDo("Run `xpkg list` later, or allow at least %s with --wait.", 2*decisionTime)
			}
			return stillGoing(waiting, e.Client, e.Objects, p, with)
		case <-tick.C:
		}
	}
}

// decisionTime is the time in which a manager that runs decides whether it creates a Provider again for
// PackageInstalls.
const decisionTime = 10 * time.Second

// undecided reports whether the manager may create a deleted Provider again for an object that shares it, or did
// before: until the object is refused because no administrator shares the Provider, or because it finds no package for
// its kind.
func (e *Engine) undecided(ctx context.Context, p v1.Package, with deletionSummary) bool {
	return slices.ContainsFunc(e.sharing(ctx, p), func(o *frontend.Object) bool {
		return !o.IsRefused && (o.Provider == p.GetName() || slices.Contains(with.users, o.GetUID()))
	})
}

// remains reports whether the package, or an object that it owns, still exists. It fails with PackageRecreated if there
// is another package with the name.
func (e *Engine) remains(ctx context.Context, p v1.Package, with deletionSummary) (bool, error) {
	now := v1.NewPackage(p.PackageKind())
	err := e.Client.Get(ctx, client.ObjectKeyFromObject(p), now)
	switch {
	case err == nil && now.GetUID() == p.GetUID():
		return true, nil
	case err == nil:
		return true, e.recreated(ctx, now)
	case client.IgnoreNotFound(err) != nil:
		return false, apiserver.Classify(err, "read %s", inventory.ShortName(p))
	}
	revisions, err := inventory.ReadRevisions(ctx, e.Client, p)
	if err != nil {
		return false, err
	}
	for _, rev := range revisions {
		if metav1.IsControlledBy(rev, p) {
			return true, nil
		}
	}
	live, err := e.Objects.Metadata(ctx, with.objects)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return false, apiserver.Classify(err, "read the objects of %s", inventory.ShortName(p))
	}
	for _, o := range live {
		if with.owned(p, o) {
			return true, nil
		}
	}
	return false, nil
}

// addObjects adds the objects that a deleted package owns and that none of its revisions lists, and reports whether
// there are any: the status of a revision lists its objects only when all of them are written.
func (l *deletionSummary) addObjects(ctx context.Context, objects *apply.Cluster, p v1.Package) (bool, error) {
	owned, _, err := objects.OwnedContent(ctx)
	if err != nil {
		return false, err
	}
	refs := owned.By(l.isOwner(p))
	l.objects = append(l.objects, plan.Without(refs, l.objects)...)
	return len(refs) > 0, nil
}

// deletedPackage is a package that does not exist any more, and of which Kubernetes still deletes objects.
type deletedPackage struct {
	v1.Package
	owned deletionSummary
}

// deletedPackages returns the deleted packages that own objects, and for which matches returns true. There is none if
// the client may not list the objects.
func deletedPackages(
	ctx context.Context, objects *apply.Cluster, matches func(kind, name string) bool,
) ([]deletedPackage, error) {
	owned, _, err := objects.OwnedContent(ctx)
	if err != nil {
		return nil, err
	}
	byUID := map[types.UID]*deletedPackage{}
	for ref, owners := range owned {
		for _, o := range owners {
			group, _, _ := strings.Cut(o.APIVersion, "/")
			if group != v1.Group || !slices.Contains(v1.PackageKinds(), o.Kind) || !matches(o.Kind, o.Name) {
				continue
			}
			if byUID[o.UID] == nil {
				p := v1.NewPackage(o.Kind)
				p.SetName(o.Name)
				p.SetUID(o.UID)
				p.GetObjectKind().SetGroupVersionKind(v1.GroupVersion.WithKind(o.Kind))
				byUID[o.UID] = &deletedPackage{Package: p}
			}
			byUID[o.UID].owned.objects = append(byUID[o.UID].owned.objects, ref)
		}
	}
	var out []deletedPackage
	for _, p := range byUID {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b deletedPackage) int {
		return cmp.Or(cmp.Compare(inventory.ShortName(a), inventory.ShortName(b)), cmp.Compare(a.GetUID(), b.GetUID()))
	})
	return out, nil
}

// FinishDeletions ends the deletion of the deleted packages for which matches returns true: it waits until their
// objects are gone, or without a limit prints a note. It returns these packages.
func (e *Engine) FinishDeletions(
	ctx context.Context, limit time.Duration, matches func(kind, name string) bool,
) ([]v1.Package, error) {
	deleted, err := deletedPackages(ctx, e.Objects, matches)
	if err != nil {
		return nil, err
	}
	var out []v1.Package
	for _, p := range deleted {
		if limit == 0 {
			e.noteDefinitions(p.owned, p, nil)
		} else if err := e.waitGone(ctx, p, p.owned, limit); err != nil {
			return nil, err
		}
		out = append(out, p.Package)
	}
	return out, nil
}

// recreated returns the error of a package that exists again, with the objects that require it.
func (e *Engine) recreated(ctx context.Context, now v1.Package) error {
	failed := ErrRecreated.New(nil, "%s was deleted, and created again", inventory.ShortName(now))
	var by *errcode.Error
	if errors.As(planner.CheckMaintained(ctx, e.Frontend, e.Client, now, nil), &by) {
		return failed.WithDo("%s", by.Do)
	}
	name := inventory.ShortName(now)
	if now.GetAnnotations()[revision.AnnotationCreatedForNamespaces] == "true" {
		return failed.WithDo(
			"The manager has created it again for PackageInstalls that use it. Delete these first; `xpkg plan uninstall %s` lists them.",
			name,
		)
	}
	all, err := inventory.Load(ctx, e.Client)
	switch {
	case err != nil:
		return failed.WithDo("Run `xpkg plan uninstall %s`: if packages require it, uninstall these first.", name)
	case len(all.Dependents(now)) > 0:
		return failed.WithDo("Uninstall the packages that require it first: %s.", strings.Join(all.Dependents(now), ", "))
	}
	return failed.WithDo(
		"No package requires it: another client has installed it again, and it stays. To uninstall it too, run `xpkg uninstall %s`.",
		name,
	)
}

// stillGoing returns the error of an incomplete deletion, with the objects that delay it.
func stillGoing(
	ctx context.Context, cluster client.Client, objects *apply.Cluster, p v1.Package, with deletionSummary,
) error {
	now, err := inventory.Get(ctx, cluster, p.PackageKind(), p.GetName())
	if err != nil {
		return err
	}
	if now == nil {
		now = v1.NewPackage(p.PackageKind())
	}
	// An object that cannot be read is not named.
	holders, _ := objects.Holders(ctx, with.objects)
	reason, remedy := inventory.DeletionDelay(now, holders)
	var why error
	if reason != "" {
		why = errors.New(reason)
	}
	return ErrStillGoing.New(why, "%s is still being deleted", inventory.ShortName(p)).WithDo("%s", remedy)
}
