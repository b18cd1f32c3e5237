package operation

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// effect is the part of a step that determines its place among others. Repositories are locations. What is not known is
// empty.
type effect struct {
	repository string
	// before and after are the package before and after the step, or nil if it is not installed.
	before, after *footprint
	// provides reports whether the package provides a kind after the step.
	provides func(dependency.KindRef) bool
}

// footprint is a version of a package with its requirements and its objects.
type footprint struct {
	version  graph.Version
	requires []dependency.Dependency
	kinds    []dependency.KindRef
	objects  map[plan.Ref]bool
}

// needs reports whether the package of a step cannot be installed before another step is carried out: it requires a
// version that is not installed before, or a kind, or it takes an object over.
func (e *effect) needs(other *effect) bool {
	if e.after == nil {
		return false
	}
	if other.after != nil {
		for _, d := range e.after.requires {
			isInstalled := other.before != nil && graph.Accepts(d, other.before.version)
			if d.Package == other.repository && !isInstalled && (other.before != nil || !d.Optional) {
				return true
			}
		}
		if other.provides != nil && slices.ContainsFunc(e.after.kinds, other.provides) {
			return true
		}
	}
	if other.before == nil {
		return false
	}
	for ref := range e.after.objects {
		if other.before.objects[ref] && (other.after == nil || !other.after.objects[ref]) {
			return true
		}
	}
	return false
}

// breaks reports whether the new version of a package does not satisfy the version of another one that its step
// replaces.
func (e *effect) breaks(other *effect) bool {
	if e.after == nil || e.before == nil || other.before == nil || other.after == nil {
		return false
	}
	return slices.ContainsFunc(other.before.requires, func(d dependency.Dependency) bool {
		return d.Package == e.repository && graph.Accepts(d, e.before.version) && !graph.Accepts(d, e.after.version)
	})
}

// sequence returns the order of steps, as their numbers: a step follows those that it needs, and, as far as that is
// possible, those whose former versions it would break. Apart from that, and among steps that need each other, the
// order does not change.
func sequence(effects []*effect) []int {
	needs, rest := make([][]bool, len(effects)), make([]int, len(effects))
	for i, e := range effects {
		needs[i], rest[i] = make([]bool, len(effects)), i
		for j, other := range effects {
			needs[i][j] = i != j && e.needs(other)
		}
	}
	for k := range needs { // also indirectly
		for i := range needs {
			for j := range needs {
				needs[i][j] = needs[i][j] || needs[i][k] && needs[k][j]
			}
		}
	}
	isFree := func(i int) bool {
		return !slices.ContainsFunc(rest, func(j int) bool { return needs[i][j] && !needs[j][i] })
	}
	breaksNone := func(i int) bool {
		return !slices.ContainsFunc(rest, func(j int) bool { return i != j && effects[i].breaks(effects[j]) })
	}
	out := make([]int, 0, len(effects))
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(i int) bool { return isFree(i) && breaksNone(i) })
		if next < 0 {
			next = slices.IndexFunc(rest, isFree)
		}
		out = append(out, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return out
}

// sequence returns steps in the order in which they can be carried out. It reads the contents of all packages at once.
func (o Operation) sequence(ctx context.Context, pl *planner.Planner, steps []*Step) ([]*Step, error) {
	if len(steps) < 2 || !slices.ContainsFunc(steps, func(s *Step) bool { return !s.Remove }) {
		return steps, nil // Removals are in order.
	}
	locate, err := pl.Rewrites(ctx)
	if err != nil {
		return nil, err
	}
	var lock v1beta1.Lock
	if err := pl.Reader.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, &lock); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	effects := make([]*effect, len(steps))
	group, readers := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReads)
	contents, stop := context.WithCancel(readers)
	defer stop()
	for i, s := range steps {
		effects[i] = &effect{repository: locate(inventory.RepositoryOf(s.Subject()))}
		group.Go(func() error {
			if s.Want != nil && !s.Remove {
				content, err := pl.Content(contents, s.Want)
				switch {
				case err == nil:
					effects[i].after = after(s.Want, content, locate)
					s.uses, _ = activation.UsedBy(content) // Content that is not valid is refused by the plan.
					effects[i].provides = func(k dependency.KindRef) bool { return provide.DefinesKind(content, k) }
				case IsPlanUnavailable(err, s.Want):
					stop() // The plan of the step fails in the same way, and then the others need no order.
				}
			}
			if s.Live == nil {
				return nil
			}
			var err error
			effects[i].before, err = before(readers, pl.Reader, s.Live, lock, locate)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("read the packages: %w", err)
	}
	var out []*Step
	for _, i := range sequence(effects) {
		out = append(out, steps[i])
	}
	return out, nil
}

// concurrentReads is the maximum number of packages that are read concurrently.
const concurrentReads = 8

// after returns the package with its new content.
func after(p v1.Package, content *xpkg.Package, locate func(string) string) *footprint {
	out := &footprint{
		version: versionOf(p.PackageSpec().Package), kinds: content.Meta.Kinds, objects: map[plan.Ref]bool{},
		requires: located(slices.Concat(content.Meta.Dependencies(), graph.KindProviders(p)), locate),
	}
	// Content that is not valid is refused by the plan.
	if objects, err := desired.Of(content, desired.Options{Package: p.GetName()}); err == nil {
		composed, _ := objects.ComposedCRDs() // The plan refuses those that are not valid.
		for _, ref := range slices.Concat(objects.Refs(), composed) {
			out.objects[ref] = true
		}
	}
	return out
}

// before returns the package as it is installed, according to the Lock or its current revision.
func before(
	ctx context.Context, cluster client.Reader, p v1.Package, lock v1beta1.Lock, locate func(string) string,
) (*footprint, error) {
	out := &footprint{objects: map[plan.Ref]bool{}}
	if installed, ok := inventory.InstalledReference(p); ok {
		out.version = graph.Version{Tag: installed.Tag, Digest: installed.Digest}
	}
	requires, _ := graph.LockedDependencies(p, lock.Packages)
	out.requires = located(slices.Concat(requires, graph.KindProviders(p)), locate)
	name := p.PackageStatus().CurrentRevision
	if name == "" {
		return out, nil
	}
	rev := p.NewRevision()
	if err := cluster.Get(ctx, client.ObjectKey{Name: name}, rev); err != nil {
		if apierrors.IsForbidden(err) {
			return out, nil
		}
		return out, client.IgnoreNotFound(err)
	}
	for _, ref := range revision.Objects(rev) {
		out.objects[ref] = true
	}
	return out, nil
}

// located returns dependencies with the locations of their repositories.
func located(all []dependency.Dependency, locate func(string) string) []dependency.Dependency {
	out := slices.Clone(all)
	for i := range out {
		out[i].Package = locate(oci.RepositoryName(out[i].Package))
	}
	return out
}

func versionOf(reference string) graph.Version {
	ref, err := oci.ParseReference(reference, oci.ParseOptions{})
	if err != nil {
		return graph.Version{} // It is a name in the package cache.
	}
	return graph.Version{Tag: ref.Tag, Digest: ref.Digest}
}
