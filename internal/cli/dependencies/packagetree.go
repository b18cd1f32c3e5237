package dependencies

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// packageTree finds packages by their revision and by their repository in the Lock.
type packageTree struct {
	all *inventory.Inventory
	// running maps packages to the revision that runs: the active one, or the newest if none is active.
	running map[string]runningRevision
	// instead maps packages to the version that runs in place of the requested one.
	instead map[string]*inventory.Running
	seen    map[string]bool
	// unknown are the packages in the tree whose dependencies are not in the Lock, although they have an active revision.
	unknown []string
	// installs are the install objects of the first generation.
	installs []*frontend.Object
}

// runningRevision is the revision of a package that runs.
type runningRevision struct {
	name, image string
	// isActive reports whether the revision is active, so that the Lock has an entry for it.
	isActive bool
	// objects is the number of objects of each kind.
	objects map[string]int
}

func newPackageTree(all *inventory.Inventory) *packageTree {
	return &packageTree{
		all: all, running: map[string]runningRevision{}, instead: map[string]*inventory.Running{}, seen: map[string]bool{},
	}
}

// readPackageTree reads everything that a tree shows. The Lock contains it for the packages that run the requested
// version. Revisions are larger, so they are read only for the kinds of the other packages.
func readPackageTree(ctx context.Context, c client.Client, api *frontend.API) (*packageTree, error) {
	var installs []*frontend.Object
	var reads sync.WaitGroup
	reads.Go(func() { installs = frontend.Installs(api.All(ctx, c)) })
	all, err := inventory.LoadNamed(ctx, c)
	reads.Wait()
	if err != nil {
		return nil, err
	}
	t := newPackageTree(all)
	t.installs = installs
	unlisted := t.setLocked()
	if len(unlisted) == 0 {
		return t, nil
	}
	revisions, err := inventory.OfEachKind(func(kind string) (v1.PackageRevisionList, error) {
		list := v1.NewPackage(kind).NewRevisionList()
		if !slices.ContainsFunc(unlisted, func(p v1.Package) bool { return p.PackageKind() == kind }) {
			return list, nil
		}
		return list, apiserver.Classify(c.List(ctx, list), "list the revisions of %ss", strings.ToLower(kind))
	})
	if err != nil {
		return nil, err
	}
	t.setRevisions(unlisted, revisions)
	return t, nil
}

// setLocked sets the running revisions of packages from their entries in the Lock, and returns the packages whose
// revisions must be read: another version than the requested one may run, or the entry is missing or lists no objects.
func (t *packageTree) setLocked() (unlisted []v1.Package) {
	for _, p := range t.all.Packages {
		entry, listed := graph.LockEntry(p, t.all.Lock.Packages)
		switch {
		case p.PackageStatus().CurrentRevision == "":
		case !listed, len(entry.Owns) == 0, inventory.MayRunAnother(p):
			unlisted = append(unlisted, p)
		default:
			running := runningRevision{
				name: entry.Name, image: p.PackageSpec().Package, isActive: true, objects: map[string]int{},
			}
			for _, o := range entry.Owns {
				running.objects[o.Kind] += int(o.Count)
			}
			t.running[inventory.ShortName(p)] = running
		}
	}
	return unlisted
}

// setRevisions sets the running revisions of packages, which are the active ones. They differ from the specs while a
// revision waits for activation or cannot be fetched.
func (t *packageTree) setRevisions(packages []v1.Package, lists []v1.PackageRevisionList) {
	byPackage := map[string][]v1.PackageRevision{}
	for i, kind := range v1.PackageKinds() {
		for _, rev := range lists[i].Revisions() {
			of := v1.ObjectName(kind, rev.GetLabels()[v1.LabelPackage])
			byPackage[of] = append(byPackage[of], rev)
		}
	}
	for _, p := range packages {
		name := inventory.ShortName(p)
		revisions := byPackage[name]
		at := slices.IndexFunc(revisions, revision.IsActive)
		if at < 0 {
			at = slices.IndexFunc(
				revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == p.PackageStatus().CurrentRevision },
			)
		}
		if at < 0 {
			continue
		}
		rev := revisions[at]
		running := runningRevision{
			name: rev.GetName(), image: rev.RevisionSpec().Image, isActive: revision.IsActive(rev), objects: map[string]int{},
		}
		for _, o := range rev.RevisionStatus().ObjectRefs {
			running.objects[o.Kind]++
		}
		t.running[name], t.instead[name] = running, inventory.RunningInstead(p, revisions)
	}
}

// roots returns the packages without dependents, and one package of each cycle that has no dependents outside
// of the cycle.
func (t *packageTree) roots() []v1.Package {
	var g dependency.Graph
	byName := map[string]v1.Package{}
	for _, p := range t.all.Packages {
		name := inventory.ShortName(p)
		byName[name] = p
		g.Add(name)
		for _, n := range t.needs(p) {
			if to := t.all.FromRepository(n.Package); to != nil && !n.Optional {
				g.Add(name, dependency.Dependency{Package: inventory.ShortName(to), Constraint: n.Constraint})
			}
		}
	}
	var out []v1.Package
	for _, name := range g.Roots() {
		out = append(out, byName[name])
	}
	return out
}

func (t *packageTree) grow(p v1.Package) *node {
	t.seen[inventory.ShortName(p)] = true
	n := t.alone(p)
	n.Message = statusMessage(p)
	n.InstallObjects = inventory.InstallsOf(t.installs, p)
	running := t.running[inventory.ShortName(p)]
	n.Revision, n.Objects = running.name, running.objects
	if running.isActive && t.all.Entry(running.name).Name == "" {
		t.unknown = append(t.unknown, inventory.ShortName(p))
	}
	for _, d := range t.needs(p) {
		n.Dependencies = append(n.Dependencies, t.need(d))
	}
	return n
}

// needs returns the packages that a package needs.
func (t *packageTree) needs(p v1.Package) []dependency.Need {
	return t.all.Needs(p, t.running[inventory.ShortName(p)].name)
}

// need returns a dependency, with its package at its first occurrence in the tree. An optional dependency is
// a separate root of the tree, because it was not installed for this package.
func (t *packageTree) need(d dependency.Need) dependencyNode {
	out := dependencyNode{Package: d.Package, Constraint: d.Constraint, Optional: d.Optional, Kinds: d.Kinds}
	by := t.all.FromRepository(d.Package)
	if by == nil {
		return out
	}
	if out.Seen = d.Optional || t.seen[inventory.ShortName(by)]; out.Seen {
		out.Installed = t.alone(by)
	} else {
		out.Installed = t.grow(by)
	}
	return out
}

// names returns the packages in the tree.
func (t *packageTree) names() []string {
	var shown []v1.Package
	for _, p := range t.all.Packages {
		if t.seen[inventory.ShortName(p)] {
			shown = append(shown, p)
		}
	}
	return inventory.ResourceNames(shown)
}

// alone returns a package without its dependencies, for a repeated occurrence in the tree.
func (t *packageTree) alone(p v1.Package) *node {
	name := inventory.ShortName(p)
	requested := inventory.ShortVersion(p.PackageSpec().Package)
	return &node{
		Kind: p.PackageKind(), Name: p.GetName(), Version: cmp.Or(inventory.ShortVersion(t.running[name].image), requested),
		Healthy: inventory.Status(p, v1.TypeHealthy),
		Reason:  inventory.ReasonOf(p), InstalledFor: graph.RequiredBy(p), Deleting: inventory.IsDeleting(p),
		dependents: wording.Few(t.all.DependentNames(graph.RequiredBy(p)), 3, ", "),
		Running:    t.instead[name], requested: requested,
	}
}

// statusMessage returns the message of a package that is not healthy, is paused, or whose active version is not the
// requested one.
func statusMessage(p v1.Package) string {
	if p.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue {
		return inventory.HealthMessage(p)
	}
	if v1.IsPaused(p) {
		return "paused"
	}
	return cmp.Or(inventory.PendingActivation(p), inventory.HealthNote(p))
}
