package planner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const (
	// unlistedTimeout limits the time in which a plan reads the content of packages that the Lock does not list.
	unlistedTimeout = 10 * time.Second
	// concurrentReads is the maximum number of packages that are read concurrently.
	concurrentReads = 8
)

// clusterState is the state of a cluster that the plan for one package depends on.
type clusterState struct {
	cluster types.UID
	// live is the package, or nil.
	live      v1.Package
	revisions []v1.PackageRevision
	// others are all other packages. Lock has their dependencies and objects, as the manager
	// recorded them.
	others []v1.Package
	lock   v1beta1.Lock
	// place returns the location from which a repository is read, so that a package is known
	// under all of its names.
	place func(repository string) string
	// contents and graph are those of the packages after the operation, without the packages that are installed or moved
	// for it.
	contents state.KnownContents
	graph    *graph.Graph
	// unlisted are the contents of the packages that the Lock does not list, by the names of the packages.
	unlisted map[string]unlistedContent
	// released are the dependencies for kinds whose CRDs their packages do not contain any more.
	released []dependency.Dependency
}

// read returns the state of the cluster for a plan of p.
func (pl *planning) read(ctx context.Context, p v1.Package) (*clusterState, error) {
	var s clusterState
	var err error
	if s.cluster, err = pl.Cluster.Identity(ctx); err != nil {
		return nil, err
	}
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := pl.Reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		for _, x := range pl.After.packages(kind, list.Packages()) {
			if kind == p.PackageKind() && x.GetName() == p.GetName() {
				s.live = x
			} else {
				s.others = append(s.others, x)
			}
		}
	}
	if err := pl.Reader.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, &s.lock); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the Lock: %w", err)
	}
	pl.readUnlisted(ctx, &s)
	if s.place, err = pl.finder().Rewrites(ctx); err != nil {
		return nil, err
	}
	if s.live != nil {
		s.revisions, err = pl.listRevisions(ctx, p.PackageKind(), p.GetName())
	}
	return &s, err
}

// listRevisions lists the revisions of some packages of a kind.
func (pl *planning) listRevisions(ctx context.Context, kind string, names ...string) ([]v1.PackageRevision, error) {
	some, err := labels.NewRequirement(v1.LabelPackage, selection.In, names)
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	list := v1.NewPackage(kind).NewRevisionList()
	if err := pl.Reader.List(ctx, list, client.MatchingLabelsSelector{
		Selector: labels.NewSelector().Add(*some),
	}); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	return list.Revisions(), nil
}

// nodes returns the nodes of all other packages, with their dependencies. It reads
// revisions only for packages whose repository isNeeded, because their running versions matter, and
// for packages that were rolled back, because their running versions differ from their specs.
func (pl *planning) nodes(
	ctx context.Context, s *clusterState, isNeeded func(repository string) bool,
) ([]graph.Node, error) {
	names := map[string][]string{}
	for _, x := range s.others {
		if isNeeded(oci.RepositoryName(x.PackageSpec().Package)) || revision.PolicyOf(x).Back != "" {
			names[x.PackageKind()] = append(names[x.PackageKind()], x.GetName())
		}
	}
	revisions := map[string][]v1.PackageRevision{}
	for _, kind := range slices.Sorted(maps.Keys(names)) {
		list, err := pl.listRevisions(ctx, kind, names[kind]...)
		if err != nil {
			return nil, err
		}
		for _, rev := range list {
			key := Package{Kind: kind, Name: rev.GetLabels()[v1.LabelPackage]}.Short()
			revisions[key] = append(revisions[key], rev)
		}
	}
	var nodes []graph.Node
	for _, x := range s.others {
		if n, ok := s.node(x, revisions[Package{Kind: x.PackageKind(), Name: x.GetName()}.Short()]); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// node returns the node of a package with its revisions.
func (s *clusterState) node(x v1.Package, revisions []v1.PackageRevision) (graph.Node, bool) {
	return graph.NodeFromRevisions(x, revisions, s.dependenciesOf(x))
}

// liveNode returns the node of the current package, and false if it does not exist.
func (s *clusterState) liveNode() (graph.Node, bool) {
	if s.live == nil {
		return graph.Node{}, false
	}
	return s.node(s.live, s.revisions)
}

// placeOf returns the location from which a repository is read.
func (s *clusterState) placeOf(repository string) string {
	if s.place == nil {
		return oci.RepositoryLocation(repository)
	}
	return s.place(repository)
}

// sameRepository reports whether two repositories are read from the same one.
func (s *clusterState) sameRepository(a, b string) bool { return s.placeOf(a) == s.placeOf(b) }

// startPlan returns a plan that only contains the preconditions and the installed version.
func (s *clusterState) startPlan(op Operation, p v1.Package) (*Plan, error) {
	out := &Plan{
		APIVersion: APIVersion, Kind: Kind, Operation: op, Cluster: s.cluster,
		Package: Package{Kind: p.PackageKind(), Name: p.GetName()},
	}
	for _, r := range s.revisions {
		out.Preconditions.Revisions = append(out.Preconditions.Revisions, Revision{
			Name: r.GetName(), UID: r.GetUID(), Number: r.RevisionSpec().Revision,
			State: r.RevisionSpec().DesiredState, Digest: r.RevisionSpec().Digest,
		})
	}
	slices.SortFunc(out.Preconditions.Revisions, func(a, b Revision) int { return cmp.Compare(a.Name, b.Name) })
	if s.live == nil {
		return out, nil
	}
	out.Package.From = &Version{Reference: s.live.PackageSpec().Package, Digest: recordedDigest(s.live)}
	out.Preconditions.UID, out.Preconditions.Generation = s.live.GetUID(), s.live.GetGeneration()
	out.Preconditions.Kinds = wishOf(s.live)
	var err error
	out.Preconditions.Spec, err = specOf(s.live)
	return out, err
}

// preconditions returns the packages on which a plan depends: the dependencies of the package, and the packages that
// are updated with it. Changes of any other package do not invalidate the plan.
func (s *clusterState) preconditions(p *Plan) []v1.Package {
	repositories := map[string]bool{}
	for _, d := range p.Dependencies {
		repositories[s.placeOf(oci.RepositoryName(d.Package))] = true
	}
	for _, b := range p.AddedPackages {
		repositories[s.placeOf(oci.RepositoryName(b.Reference))] = true
	}
	return slices.DeleteFunc(slices.Clone(s.others), func(x v1.Package) bool {
		repository := oci.RepositoryName(x.PackageSpec().Package)
		return repository == "" || !repositories[s.placeOf(repository)]
	})
}

// installedOf describes packages in the preconditions of a plan.
func installedOf(packages []v1.Package) []Installed {
	var out []Installed
	for _, x := range packages {
		out = append(out, Installed{
			Kind: x.PackageKind(), Name: x.GetName(), Reference: x.PackageSpec().Package,
			Digest: x.PackageStatus().ResolvedDigest,
		})
	}
	slices.SortFunc(out, func(a, b Installed) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// recordedDigest returns the digest that the status records for the reference of a package, or ""
// until the manager has resolved a new reference.
func recordedDigest(p v1.Package) string {
	if p.PackageStatus().CurrentIdentifier != p.PackageSpec().Package {
		return ""
	}
	return p.PackageStatus().ResolvedDigest
}

// unlistedContent is the content of a package that the Lock does not list yet, or the reason why it cannot be read.
type unlistedContent struct {
	pkg *xpkg.Package
	err error
}

// isListed reports whether the Lock lists the current content of a package. The manager writes the Lock a short time
// after it has installed a package.
func (s *clusterState) isListed(p v1.Package) bool {
	_, listed := graph.LockEntry(p, s.lock.Packages)
	return listed
}

// dependenciesOf returns a function that returns the dependencies of a package: from the Lock or, if it does not list
// the current content yet, from the content.
func (s *clusterState) dependenciesOf(p v1.Package) graph.Dependencies {
	return func(image string, content oci.Digest) []dependency.Dependency {
		if needs, listed := graph.LockedDependencies(p, s.lock.Packages); listed {
			return needs
		}
		if pkg := s.unlisted[holderName(p)].pkg; pkg != nil {
			return pkg.Meta.Dependencies()
		}
		return graph.DependenciesInLock(s.lock.Packages)(image, content)
	}
}

// readUnlisted reads the content of the packages that the Lock does not list.
func (pl *planning) readUnlisted(ctx context.Context, s *clusterState) {
	s.unlisted = map[string]unlistedContent{}
	if pl.Source == nil {
		return
	}
	packages := s.others
	if s.live != nil {
		packages = append(slices.Clone(packages), s.live)
	}
	packages = slices.DeleteFunc(
		slices.Clone(packages), func(x v1.Package) bool { return x.GetDeletionTimestamp() != nil || s.isListed(x) },
	)
	contents := make([]unlistedContent, len(packages))
	ctx, cancel := context.WithTimeout(ctx, unlistedTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(concurrentReads)
	for i, x := range packages {
		group.Go(func() error {
			contents[i].pkg, contents[i].err = pl.readCurrent(ctx, x)
			return nil
		})
	}
	_ = group.Wait() // Each content has its own error.
	for i, x := range packages {
		s.unlisted[holderName(x)] = contents[i]
	}
}

// readCurrent reads the content of the reference of an installed package or, if it was rolled back, of the revision to
// which it was.
func (pl *planning) readCurrent(ctx context.Context, p v1.Package) (*xpkg.Package, error) {
	packages := pl.packages()
	if back := revision.PolicyOf(p).Back; back != "" {
		rev := p.NewRevision()
		if err := pl.Reader.Get(ctx, client.ObjectKey{Name: back}, rev); err != nil {
			return nil, fmt.Errorf("read the revision %s: %w", back, err)
		}
		pkg, _, err := packages.ReadRevision(ctx, rev)
		return pkg, err
	}
	spec := p.PackageSpec()
	res, err := packages.Resolve(ctx, p, nil, state.ResolveOptions{})
	if err != nil {
		return nil, err
	}
	return packages.Read(ctx, res.Origin, res.Digest, spec.Package, spec.PackagePullPolicy)
}

// reserved returns a refusal for each object that does not exist yet and that the manager reserves for another package:
// an older one that the Lock does not list yet, and that does not wait for other packages.
func (s *clusterState) reserved(p v1.Package, refs []plan.Ref, live map[plan.Ref]plan.Live) ([]plan.Refusal, error) {
	holders := plan.Holders{}
	for _, x := range s.others {
		pkg := s.unlisted[holderName(x)].pkg
		created := x.GetCreationTimestamp()
		isOlder := p.GetUID() == "" || created.Before(new(p.GetCreationTimestamp()))
		isInstalling := slices.Contains([]v1.ConditionReason{"", v1.ReasonProgressing}, x.GetCondition(v1.TypeReady).Reason)
		if pkg == nil || !isOlder || !isInstalling || v1.IsPaused(x) ||
			x.PackageSpec().RevisionActivationPolicy == v1.ManualActivation {
			continue
		}
		objects, err := desired.Of(pkg, desired.Options{Package: x.GetName()})
		if err != nil {
			continue // The manager refuses the package.
		}
		composed, err := objects.ComposedCRDs()
		if err != nil {
			return nil, err
		}
		holders.Take(holderName(x), slices.Concat(objects.Refs(), composed))
	}
	absent := slices.DeleteFunc(slices.Clone(refs), func(r plan.Ref) bool {
		_, exists := live[r]
		return exists
	})
	return holders.Take(holderName(p), absent), nil
}

// warnOfUnknown adds a warning for each other package whose dependencies are not known.
func (s *clusterState) warnOfUnknown(out *Plan) {
	for _, x := range s.others {
		if err := s.unlisted[holderName(x)].err; err != nil {
			out.warn(fmt.Sprintf(
				"The dependencies of %s are not known: %v.", Package{Kind: x.PackageKind(), Name: x.GetName()}.Short(), err,
			))
		}
	}
}
