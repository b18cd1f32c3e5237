package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Failures of dependencies.
var (
	ErrDependencyMissing = failure.Register(failure.Code{
		Name: "DependencyMissing", Class: failure.Conflict,
		Cause: "A package that this one depends on is not installed.",
		Fix:   "Install the packages that the message names; the install then continues by itself.",
	})
	ErrDependencyVersion = failure.Register(failure.Code{
		Name: "DependencyVersion", Class: failure.Conflict,
		Cause: "A package that this one depends on is installed at a version that it does not accept.",
		Fix:   "Move the dependency to a version within the constraint that the message names, with `xpkg update`; or let the package manager do so, with its flag --dependency-upgrades.",
	})
	ErrDependencyComing = failure.Register(failure.Code{
		Name: "DependencyComing", Class: failure.Unhealthy,
		Cause: "A package that this one depends on is on its way to a version that it accepts, and is not there yet.",
		Fix:   "Wait: it goes on by itself. If the message says why the dependency does not get on, mend that.",
	})
)

// dependencies checks that everything the package directly depends on is there at a
// version that it accepts, and counts it in the status. What is not there is installed,
// and what does not fit is moved, where that is wanted; the revision waits for it. Of
// what is optional, only what is there counts.
func (r *revisionReconciler) dependencies(ctx context.Context, log *slog.Logger, f family, meta format.Meta) error {
	found{}.count(f.rev.RevisionStatus(), 0)
	needs := lockfile.Needs(meta.Dependencies())
	if f.rev.RevisionSpec().SkipDependencyResolution || len(needs) == 0 {
		return nil
	}
	// From now on a package that comes makes this one look again.
	r.needs.learn(f.rev.RevisionSpec().Digest, meta)
	graph, err := r.graph(ctx, f, meta)
	if err != nil {
		return err
	}
	found := r.lookAt(ctx, graph.Check(needs))
	found.count(f.rev.RevisionStatus(), len(meta.DependsOn))
	if len(found.missing)+len(found.unfit) > 0 {
		moved, err := r.settle(ctx, log, wanting{f, meta, len(found.missing) > 0}, graph)
		if err != nil {
			return err
		}
		if len(moved) > 0 {
			// The cache does not know of it yet.
			return coming(moved)
		}
	}
	switch {
	case len(found.missing) > 0:
		return ErrDependencyMissing.New(errors.New(strings.Join(found.missing, ", ")), "%s of %d not installed", count(len(found.missing), "dependency", "dependencies"), len(meta.DependsOn))
	case len(found.unfit) > 0:
		return ErrDependencyVersion.New(errors.New(strings.Join(found.unfit, "; ")), "dependencies at a version that does not fit")
	case len(found.coming) > 0:
		return coming(found.coming)
	}
	return nil
}

func coming(what []string) error {
	return ErrDependencyComing.New(errors.New(strings.Join(what, "; ")), "%s on the way", count(len(what), "dependency is", "dependencies are"))
}

// found are the dependencies for which a revision has to wait, and those that are off,
// in words.
type found struct {
	missing, unfit, coming, off []string
	// late is how many of those that are coming are not optional.
	late int
}

// count writes into a status how many dependencies there are of those that have to be.
func (f found) count(status *v1.PackageRevisionStatus, all int) {
	status.FoundDependencies = int64(all)
	status.InstalledDependencies = int64(all - len(f.missing) - f.late)
	status.InvalidDependencies = int64(len(f.unfit) + len(f.coming) - f.late)
	status.AbsentOptionalDependencies = f.off
}

// lookAt tells what there is of dependencies.
func (w *world) lookAt(ctx context.Context, all []closure.Found) found {
	var out found
	for _, d := range all {
		switch d.State {
		case closure.Off:
			out.off = append(out.off, d.Need.Package+" "+d.Need.Constraint)
		case closure.Missing:
			out.missing = append(out.missing, strings.TrimSpace(d.Need.Package+" "+d.Need.Constraint))
		case closure.Unfit:
			words := "%s is installed at %s, and %s is needed"
			if d.Need.Optional {
				words = "%s is installed at %s, and the package works only with %s"
			}
			out.unfit = append(out.unfit, fmt.Sprintf(words, d.Need.Package, d.At.At(), d.Need.Constraint)+w.says(ctx, d.At))
		case closure.Coming:
			out.coming = append(out.coming, fmt.Sprintf("%s is on its way from %s to %s", d.Need.Package, oldest(d.At), d.At.At())+w.says(ctx, d.At))
			if !d.Need.Optional {
				out.late++
			}
		}
	}
	return out
}

// oldest is the version that is in the cluster for as long as another one is on its way.
func oldest(n closure.Node) closure.Version { return n.Running[len(n.Running)-1] }

// says is what a package that is not ready says of itself, to be added to what is said
// of it.
func (w *world) says(ctx context.Context, n closure.Node) string {
	p := v1.NewPackage(n.Kind)
	if w.client.Get(ctx, client.ObjectKey{Name: n.Name}, p) != nil {
		return ""
	}
	ready := p.GetCondition(v1.TypeReady)
	if ready.Status == corev1.ConditionTrue || ready.Message == "" {
		return ""
	}
	// What to do is said once, by whoever tells of it.
	message := strings.TrimSuffix(ready.Message, " "+ErrDependencyComing.Fix)
	return "; it says: " + strings.TrimSuffix(message, ".")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// graph is all packages of the cluster with what they need, as far as that is known.
// The package of a revision is there as that revision.
func (r *revisionReconciler) graph(ctx context.Context, f family, meta format.Meta) (*closure.Graph, error) {
	// A revision that another package manager has made does not say its digest.
	content, _ := oci.ParseDigest(f.rev.RevisionSpec().Digest)
	var nodes []closure.Node
	if n, ok := closure.At(f.pkg, f.rev.RevisionSpec().Image, content, meta.Dependencies()); ok {
		nodes = append(nodes, n)
	}
	for _, kind := range v1.PackageKinds() {
		others, err := r.nodes(ctx, kind, keyOf(f.pkg))
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, others...)
	}
	return closure.NewGraph(nodes, func(repository string) string { return r.place(ctx, repository) }), nil
}

// nodes are the packages of a kind but for one, as they are in the cache. Nothing of
// them is changed, so nothing is copied.
func (w *world) nodes(ctx context.Context, kind string, except packageKey) ([]closure.Node, error) {
	list := v1.NewPackageList(kind)
	if err := w.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	all := v1.NewPackage(kind).NewRevisionList()
	if err := w.client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	revisions := map[string][]v1.PackageRevision{}
	for _, rev := range all.Revisions() {
		name := rev.GetLabels()[v1.LabelPackage]
		revisions[name] = append(revisions[name], rev)
	}
	var nodes []closure.Node
	for _, p := range list.Packages() {
		if keyOf(p) == except {
			continue
		}
		if n, ok := w.node(ctx, p, revisions[p.GetName()]); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// node is a package with these revisions: as it asks to be, or as it was brought back.
func (w *world) node(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) (closure.Node, bool) {
	image, content := p.PackageSpec().Package, closure.Content(p)
	if back := closure.BroughtBack(p, revisions); back != nil {
		image = back.RevisionSpec().Image
		content, _ = oci.ParseDigest(back.RevisionSpec().Digest)
	}
	ref, err := oci.ParseReference(image, oci.ParseOptions{})
	if err != nil {
		return closure.Node{}, false
	}
	n, ok := closure.At(p, image, content, w.needs.of(ctx, ref, content.String()))
	n.Running = closure.Running(p, revisions)
	return n, ok
}

// place is where a repository is really read, after what image configs say.
func (w *world) place(ctx context.Context, repository string) string {
	origin, _, err := w.origins.Locate(ctx, repository+":latest", nil, corev1.PullIfNotPresent)
	if err != nil {
		return repository
	}
	return origin.Ref.Name()
}
