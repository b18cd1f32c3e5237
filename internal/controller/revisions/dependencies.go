package revisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// DependencyOptions configure the installation of dependencies.
type DependencyOptions struct {
	// Registry lists versions.
	Registry fetch.Lookup
	// Upgrades is the policy for moving installed dependencies to other versions. Empty means
	// [graph.None].
	Upgrades graph.Policy
	// Removal is the policy for dependencies that no package requires any more. Empty means
	// [graph.KeepOrphans].
	Removal graph.RemovalPolicy
}

// UpgradePolicy returns the policy for upgrades, or its default.
func (o DependencyOptions) UpgradePolicy() graph.Policy { return cmp.Or(o.Upgrades, graph.None) }

// Dependencies install the dependencies of packages.
type Dependencies struct {
	// Known caches the dependencies of contents.
	Known *state.Dependencies
	// Options is nil if the manager does not install dependencies.
	Options *DependencyOptions
	// locks serializes the resolution of packages that depend on each other.
	locks keyedmutex.Mutex[reservations.Key]
}

// ensureDependencies checks that all direct dependencies of a revision are installed at a matching
// version, and counts them in the status. Where the policy allows it, it installs missing
// dependencies and moves the others to a matching version, and the revision waits for them.
// Optional dependencies only constrain versions.
func (r *Reconciler) ensureDependencies(ctx context.Context, in *reconciliation) error {
	err := r.resolveDependencies(ctx, in)
	if !errors.Is(err, graph.ErrDependencyComing) {
		return err
	}
	return r.awaitDependencies(in, err)
}

// awaitDependencies stops a reconciliation that waits for dependencies, with the error DependencyComing.
func (r *Reconciler) awaitDependencies(in *reconciliation, err error) error {
	// A change of a dependency enqueues the revisions whose status shows that they wait. The first
	// retry finds a dependency that changed before this status was written.
	summary, after := status.Failed(err), requeue.LastRetry
	if in.Revision.GetCondition(v1.TypeReady).Reason != summary.Reason {
		after = requeue.FirstRetry
	}
	in.Revision.SetConditions(r.API.Time(), v1.RevisionUnhealthy(summary.Message))
	in.stop(summary, requeue.Jitter(after))
	return nil
}

// resolveDependencies returns an error with a code of package graph unless the dependencies are
// satisfied. It records their numbers in the status, and installs and moves dependencies.
func (r *Reconciler) resolveDependencies(ctx context.Context, in *reconciliation) error {
	revisionStatus, meta := in.Revision.RevisionStatus(), in.pkg.Meta
	graph.Unsatisfied{}.Record(revisionStatus, 0)
	if in.Revision.RevisionSpec().SkipDependencyResolution {
		return nil
	}
	kinds, err := r.bindKinds(ctx, in)
	needs := append(lockfile.Dependencies(meta.Dependencies()), kinds.Selected...)
	if err != nil || len(needs) == 0 && len(meta.Kinds) == 0 {
		return err
	}
	total := len(meta.DependsOn) + len(kinds.Selected)
	// From now on a new package enqueues the revisions that require it.
	r.Dependencies.Known.Add(in.Revision.RevisionSpec().Digest, meta)
	g, err := r.dependencyGraph(ctx, in)
	if err != nil {
		return err
	}
	unsatisfied := graph.Describe(g.Check(needs), func(n graph.Node) string { return r.messageOf(ctx, n) })
	unsatisfied.Record(revisionStatus, total)
	var cycle error
	if !graph.WasHealthy(in.Package, in.Revision.GetName()) {
		cycle = g.CheckCycle(r.Kind, in.Package.GetName())
	}
	if len(kinds.Missing) > 0 {
		// A change of any package enqueues the revisions whose status shows missing dependencies.
		revisionStatus.FoundDependencies += int64(len(kinds.Missing))
		return cmp.Or(cycle, r.waitForKinds(ctx, in, g, kinds.Missing))
	}
	missing := len(unsatisfied.Missing) > 0
	if missing || len(unsatisfied.Incompatible) > 0 || cycle != nil {
		// Other versions of the dependencies may avoid a cycle.
		moved, err := r.solveDependencies(ctx, in, g, missing && cycle == nil)
		if err != nil {
			return err
		}
		if len(moved) > 0 {
			// The cache does not have the new versions yet.
			return graph.Coming(moved)
		}
	}
	if cycle != nil {
		return cycle
	}
	if err := unsatisfied.Err(total, r.installsDependencies(in)); err != nil {
		return err
	}
	return r.checkKinds(ctx, in, g, kinds.Selected)
}

// installsDependencies reports whether the manager installs and moves the dependencies of a revision.
func (r *Reconciler) installsDependencies(in *reconciliation) bool {
	return r.Dependencies.Options != nil && revision.InstallsDependencies(in.Package)
}

// messageOf returns the message of the Ready condition of a package that is not ready, and "" for
// others.
func (r *Reconciler) messageOf(ctx context.Context, n graph.Node) string {
	p := v1.NewPackage(n.Kind)
	if r.API.Client.Get(ctx, client.ObjectKey{Name: n.Name}, p) != nil {
		return ""
	}
	if ready := p.GetCondition(v1.TypeReady); ready.Status != corev1.ConditionTrue {
		return ready.Message
	}
	return ""
}

// dependencyGraph returns the graph of all packages in the cache. The node of the revision's own
// package has the dependencies of that revision.
func (r *Reconciler) dependencyGraph(ctx context.Context, in *reconciliation) (*graph.Graph, error) {
	// A revision that another package manager created has no digest.
	content, _ := oci.ParseDigest(in.Revision.RevisionSpec().Digest)
	var nodes []graph.Node
	if n, ok := graph.NodeFromImage(
		in.Package, in.Revision.RevisionSpec().Image, content, in.pkg.Meta.Dependencies(),
	); ok {
		nodes = append(nodes, n)
	}
	own := reservations.KeyOf(in.Package)
	contents := waitingContents{r.Dependencies.Known, map[reservations.Key]string{}}
	for _, kind := range v1.PackageKinds() {
		packages, revisions, err := state.ListPackages(ctx, r.API.Client, kind)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if reservations.KeyOf(p) == own {
				continue
			}
			n, ok := graph.NodeFromRevisions(p,
				revisions[p.GetName()], func(image string, content oci.Digest) []dependency.Dependency {
					return r.Dependencies.Known.Of(ctx, image, content.String())
				})
			if !ok {
				continue
			}
			nodes = append(nodes, n)
			if p.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue {
				contents.images[reservations.KeyOf(p)] = n.Reference()
			}
		}
	}
	in.contents = state.KnownContents{ContentReader: contents, Known: map[string]*xpkg.Package{
		oci.RepositoryName(in.Revision.RevisionSpec().Image): in.pkg,
	}}
	return graph.New(state.LinkKinds(ctx, nodes, in.contents), state.Rewrites(ctx, r.Packages.Origins)), nil
}

// waitingContents has the content of the packages that are not healthy.
type waitingContents struct {
	known *state.Dependencies
	// images are the references of the packages.
	images map[reservations.Key]string
}

// Requires implements [state.ContentReader].
func (c waitingContents) Requires(ctx context.Context, n graph.Node) []dependency.KindRef {
	if image := c.images[reservations.Key{Kind: n.Kind, Name: n.Name}]; image != "" {
		return c.known.Requires(ctx, image, n.Digest.String())
	}
	return nil
}

// Defines implements [state.ContentReader].
func (c waitingContents) Defines(ctx context.Context, n graph.Node, kind dependency.KindRef) bool {
	image := c.images[reservations.Key{Kind: n.Kind, Name: n.Name}]
	return image != "" && c.known.Defines(ctx, image, n.Digest.String(), kind)
}

// solveDependencies installs and moves dependencies where the policy allows it, for one package at
// a time among packages that depend on each other. It returns a description of each move. Seen is
// the graph in which a dependency was not satisfied, and missing reports that a dependency is not
// installed.
func (r *Reconciler) solveDependencies(
	ctx context.Context, in *reconciliation, seen *graph.Graph, missing bool,
) (moved []string, err error) {
	options := r.Dependencies.Options
	if !r.installsDependencies(in) || !missing && options.UpgradePolicy() == graph.None {
		return nil, nil
	}
	component, err := componentOf(seen, in.Package)
	if err != nil {
		return nil, err
	}
	first := component.Nodes()[0]
	unlock, err := r.Dependencies.locks.Lock(ctx, reservations.Key{Kind: first.Kind, Name: first.Name})
	if err != nil {
		return nil, err
	}
	defer unlock()
	parent := v1.NewPackage(r.Kind)
	if err := r.API.RereadExisting(ctx, in.Package, parent); err != nil {
		return nil, err
	}
	policy := graph.PolicyFor(options.UpgradePolicy(), parent, in.Revision)
	if !missing && policy == graph.None {
		return nil, nil
	}
	return r.resolveAndApply(ctx, in, parent, policy)
}

// resolveAndApply finds one solution for all packages that depend on each other, and installs and
// moves all packages that the solution changes, if all of them can be installed. A conflict is
// reported only by the packages whose dependencies are not satisfied.
func (r *Reconciler) resolveAndApply(
	ctx context.Context, in *reconciliation, parent v1.Package, policy graph.Policy,
) (moved []string, err error) {
	// The previous holder of the lock may have made all changes.
	seen, err := r.dependencyGraph(ctx, in)
	if err != nil {
		return nil, err
	}
	if _, err := componentOf(seen, in.Package); err != nil {
		return nil, err
	}
	resolver := seen.Resolver(r.Dependencies.Options.Registry, r.Packages.Origins, parent)
	component, result, err := state.ResolveProviders(ctx, seen,
		resolver, r.Kind, in.Package.GetName(), policy, func(ctx context.Context, c graph.Change) (*xpkg.Package, error) {
			return r.additions(in).ReadChange(ctx, parent, c)
		})
	if err != nil {
		return nil, err
	}
	for _, note := range result.Notes {
		logging.FromContext(ctx).InfoContext(ctx, "dependencies", "note", note)
	}
	changes := component.Changes(result)
	if len(changes) == 0 {
		return nil, nil
	}
	if err := r.preflightChanges(ctx, in, seen, changes); err != nil {
		return nil, err
	}
	// The package may have been deleted or changed meanwhile.
	now := v1.NewPackage(r.Kind)
	if err := r.API.RereadExisting(ctx, in.Package, now); err != nil {
		return nil, err
	}
	if now.GetGeneration() != parent.GetGeneration() {
		return nil, requeue.ErrStale
	}
	return r.applyChanges(ctx, parent, changes)
}

// componentOf returns the graph of the packages that are connected to a package by dependencies. It
// fails with requeue.ErrStale if the graph does not contain the package.
func componentOf(g *graph.Graph, p v1.Package) (*graph.Graph, error) {
	component := g.Component(p.PackageKind(), p.GetName())
	if len(component.Nodes()) == 0 {
		// The package was deleted meanwhile.
		return nil, requeue.ErrStale
	}
	return component, nil
}

// bindKinds returns the dependencies on the packages that provide the kinds that a revision requires, and records them
// on the package, with the kinds that have neither a recorded nor an installed provider.
func (r *Reconciler) bindKinds(ctx context.Context, in *reconciliation) (state.KindBinding, error) {
	if len(in.pkg.Meta.Kinds) == 0 {
		return state.KindBinding{}, nil
	}
	found, err := state.BindKinds(ctx,
		r.API.Cluster, in.pkg, graph.KindProviders(in.Package), func(kind, name string) string {
			return r.API.RepositoryOf(ctx, kind, name)
		})
	if err != nil || len(found.Missing) > 0 {
		return found, err
	}
	return found, r.recordProviders(ctx, in, found.Selected)
}

// waitForKinds returns the reason why a revision waits for missing kinds: an installed package whose objects do not
// exist yet will provide them, or they have no provider. The manager selects none.
func (r *Reconciler) waitForKinds(
	ctx context.Context, in *reconciliation, g *graph.Graph, missing []dependency.KindRef,
) error {
	own, _ := g.Find(oci.RepositoryName(in.Revision.RevisionSpec().Image))
	linked, rest := state.LinkedKinds(own, missing)
	if len(rest) > 0 {
		return noProvider(in.Package, rest)
	}
	return graph.Coming(r.unhealthyProviders(ctx, g, linked))
}

// unhealthyProviders describes the packages that provide kinds and are not healthy.
func (r *Reconciler) unhealthyProviders(
	ctx context.Context, g *graph.Graph, selected []dependency.Dependency,
) []string {
	var out []string
	for _, d := range selected {
		if n, ok := g.Find(g.Name(d.Package)); ok && !r.isHealthy(ctx, n) {
			out = append(out, fmt.Sprintf("%s, which provides %s, is not healthy", d.Package, d.CRD))
		}
	}
	return out
}

// noProvider returns the error of a package whose kinds have no provider.
func noProvider(p v1.Package, missing []dependency.KindRef) error {
	var names, commands []string
	for _, k := range missing {
		names = append(names, k.String())
		if !k.IsAll() {
			commands = append(commands, "`xpkg install --kind "+k.String()+"`")
		}
	}
	failed := provide.ErrNoProvider.New(
		nil, "%s requires %s, and no installed package provides it", p.GetName(), strings.Join(names, ", "),
	)
	if len(commands) == 0 {
		return failed.WithDo(
			"Install packages that provide the kinds by their names; `xpkg search group:%s` finds them. The manager does not select one.",
			missing[0].Group,
		)
	}
	return failed.WithDo(
		"Run %s, or install a package that provides the kind. The manager does not select one.",
		strings.Join(commands, " and "),
	)
}

// recordProviders writes the selected packages to the annotation of the package, if they are not recorded.
func (r *Reconciler) recordProviders(ctx context.Context, in *reconciliation, selected []dependency.Dependency) error {
	if !graph.SetKindProviders(in.Package, selected) {
		return nil
	}
	live := v1.NewPackage(r.Kind)
	if err := r.API.RereadExisting(ctx, in.Package, live); err != nil {
		return err
	}
	if !graph.SetKindProviders(live, selected) {
		return nil
	}
	if err := r.API.Client.Update(ctx, live); err != nil {
		return fmt.Errorf("record the providers of kinds: %w", err)
	}
	logging.FromContext(ctx).
		InfoContext(ctx, "providers of kinds recorded", "providers", live.GetAnnotations()[graph.AnnotationKindProviders])
	return nil
}

// checkKinds waits until the selected packages are healthy and the API server serves the kinds. A kind whose provider
// does not run is served, but its objects would not be reconciled.
func (r *Reconciler) checkKinds(
	ctx context.Context, in *reconciliation, g *graph.Graph, selected []dependency.Dependency,
) error {
	if len(in.pkg.Meta.Kinds) == 0 {
		return nil
	}
	if waiting := r.unhealthyProviders(ctx, g, selected); len(waiting) > 0 {
		in.Revision.RevisionStatus().InstalledDependencies -= int64(len(waiting))
		return graph.Coming(waiting)
	}
	var required []dependency.KindRef
	for _, k := range in.pkg.Meta.Kinds {
		if !provide.DefinesKind(in.pkg, k) {
			required = append(required, k)
		}
	}
	// The kinds for which all kinds of a group stand are recorded.
	for _, d := range selected {
		if k, err := dependency.ParseKindRef(d.CRD); err == nil && !slices.Contains(required, k) {
			required = append(required, k)
		}
	}
	missing, err := state.UnservedKinds(ctx, r.API.Cluster, required)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return state.KindNotServed(missing[0], selected)
	}
	released, err := state.ReleasedKinds(ctx, r.API.Cluster, selected)
	if err != nil || len(released) == 0 {
		return err
	}
	return state.KindReleased(released[0])
}

// isHealthy reports whether a package is healthy.
func (r *Reconciler) isHealthy(ctx context.Context, n graph.Node) bool {
	p := v1.NewPackage(n.Kind)
	if r.API.Client.Get(ctx, client.ObjectKey{Name: n.Name}, p) != nil {
		return false
	}
	return p.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue
}
