package preview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/resolve"
)

// Source is where content comes from; a content.Source is one.
type Source interface {
	// Named gives the digest of what was put into the package cache under a name.
	Named(ctx context.Context, name string) (oci.Digest, error)
	// Resolve asks which content an origin stands for now.
	Resolve(ctx context.Context, o content.Origin, maxAge time.Duration) (oci.Digest, error)
	// Read gives the package with a digest. What is not at hand is pulled, if pull
	// says that it may be.
	Read(ctx context.Context, o content.Origin, d oci.Digest, pull bool) (*format.Package, error)
}

// Cluster is what is read of a cluster beside packages; NewCluster makes one.
type Cluster interface {
	// Identity is the UID of the namespace kube-system, or empty when that may not
	// be read.
	Identity(ctx context.Context) (types.UID, error)
	// Metadata reads the metadata of those of the objects that exist.
	Metadata(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error)
	// Count tells how many custom resources definitions have, in the order of
	// their names; those that have none are left out.
	Count(ctx context.Context, definitions []string) ([]Resources, error)
}

// Planner makes plans. It writes nothing.
type Planner struct {
	// Reader reads packages, revisions, ImageConfigs, the Lock and pull secrets. It
	// must ask the cluster itself: a plan of yesterday's state is worth nothing.
	Reader  client.Reader
	Cluster Cluster
	Source  Source
	// Registry is where versions of dependencies are looked up. Without it, nobody
	// knows what would be installed with a package.
	Registry resolve.Registry
	// Namespace is that of the package manager.
	Namespace string
	// Ceiling is that of the package manager over what packages request, as far as it
	// is known here.
	Ceiling permission.CeilingSource
	// Upgrades says what the package manager does when a package needs another version
	// of one that is installed. Empty means that it says so itself, in the Lock.
	Upgrades closure.Policy
	// Together has the packages that the same operation changes beside the one that is
	// planned, as [Package.Short]: what they need now is not broken by it.
	Together map[string]bool
	// Pin makes the plan write the reference with the digest that it was resolved
	// to, so that exactly the content of the plan is installed whenever it is
	// applied.
	Pin bool
}

// situation is what a cluster holds when a plan is made.
type situation struct {
	cluster types.UID
	// live is the package, or nil.
	live      v1.Package
	revisions []v1.PackageRevision
	// others are all other packages, and lock is what the package manager says of them.
	others []v1.Package
	lock   v1beta1.Lock
	// place tells where a repository is really read: a package is known under each of its
	// names.
	place func(repository string) string
}

// read looks at the cluster around one package.
func (pl *Planner) read(ctx context.Context, p v1.Package) (*situation, error) {
	var s situation
	var err error
	if s.cluster, err = pl.Cluster.Identity(ctx); err != nil {
		return nil, err
	}
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := pl.Reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		for _, x := range list.Packages() {
			if kind == p.PackageKind() && x.GetName() == p.GetName() {
				s.live = x
			} else {
				s.others = append(s.others, x)
			}
		}
	}
	if err := pl.Reader.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, &s.lock); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	if s.place, err = pl.finder().Places(ctx); err != nil {
		return nil, err
	}
	if s.live != nil {
		s.revisions, err = pl.revisionsOf(ctx, p.PackageKind(), p.GetName())
	}
	return &s, err
}

// revisionsOf lists the revisions of some packages of a kind.
func (pl *Planner) revisionsOf(ctx context.Context, kind string, names ...string) ([]v1.PackageRevision, error) {
	some, err := labels.NewRequirement(v1.LabelPackage, selection.In, names)
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	list := v1.NewPackage(kind).NewRevisionList()
	if err := pl.Reader.List(ctx, list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*some)}); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	return list.Revisions(), nil
}

// start is a plan with what it is made from.
func (s *situation) start(op Operation, p v1.Package) (*Plan, error) {
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
	out.Package.From = &Version{Reference: s.live.PackageSpec().Package, Digest: digestNow(s.live)}
	out.Preconditions.UID, out.Preconditions.Generation = s.live.GetUID(), s.live.GetGeneration()
	var err error
	out.Preconditions.Spec, err = specOf(s.live)
	return out, err
}

// digestNow is the digest that is recorded for the reference of a package. While
// the package manager has not looked at a new reference, none is.
func digestNow(p v1.Package) string {
	if p.PackageStatus().CurrentIdentifier != p.PackageSpec().Package {
		return ""
	}
	return p.PackageStatus().ResolvedDigest
}

// Again plans what a kept plan plans, in the cluster of now.
func (pl *Planner) Again(ctx context.Context, planned *Plan) (*Plan, error) {
	p, err := planned.subject()
	if err != nil {
		return nil, err
	}
	if planned.Operation == Uninstall {
		return pl.Uninstall(ctx, p)
	}
	pl.Upgrades = planned.Upgrades
	return pl.Install(ctx, p)
}

// subject is the package that a plan is about.
func (p *Plan) subject() (v1.Package, error) {
	if p.Operation != Uninstall {
		return p.Wanted()
	}
	out := v1.NewPackage(p.Package.Kind)
	out.SetName(p.Package.Name)
	return out, nil
}
