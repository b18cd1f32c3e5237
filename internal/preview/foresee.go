package preview

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/plan"
)

// readers is how many packages are read at the same time.
const readers = 8

// foresee adds a refusal for each object that comes with the package and can never be
// established: another package holds it, as the Lock says, or two of those that come
// bring it. The package manager then installs none of them.
func (pl *Planner) foresee(ctx context.Context, s *situation, p v1.Package, pkg *format.Package, out *Plan) error {
	if len(out.Brings) == 0 {
		return nil
	}
	own, err := desired.Of(pkg, desired.Options{Package: p.GetName()})
	if err != nil {
		return err
	}
	brought := pl.broughtWith(ctx, p, out)
	holders, err := pl.holders(ctx, s, out, brought)
	if err != nil {
		return err
	}
	for _, ref := range own.Refs() {
		holders.Put(out.Package.Short(), ref)
	}
	for i, b := range out.Brings {
		out.Objects.Refusals = append(out.Objects.Refusals, holders.Take(lockfile.Repository(b.Reference), brought[i])...)
	}
	return nil
}

// broughtWith are the objects of the packages that come with one, in their order. What
// cannot be read is noted: nothing is known of it.
func (pl *Planner) broughtWith(ctx context.Context, p v1.Package, out *Plan) [][]plan.Ref {
	all, errs := make([][]plan.Ref, len(out.Brings)), make([]error, len(out.Brings))
	var group errgroup.Group
	group.SetLimit(readers)
	for i, b := range out.Brings {
		group.Go(func() error {
			all[i], errs[i] = pl.objectsOf(ctx, p, b)
			return nil
		})
	}
	_ = group.Wait() // What has failed is told in its place.
	for i, err := range errs {
		if err != nil {
			out.warn(fmt.Sprintf("What %s brings is not known: %v.", out.Brings[i].Reference, err))
		}
	}
	return all
}

// objectsOf names the objects of a package that comes with another one, which was read
// to prove what it needs.
func (pl *Planner) objectsOf(ctx context.Context, parent v1.Package, b Brought) ([]plan.Ref, error) {
	origin, _, err := pl.finder().Locate(ctx, b.Reference, closure.Inherited(parent), corev1.PullIfNotPresent)
	if err != nil {
		return nil, err
	}
	digest, err := oci.ParseDigest(b.Digest)
	if err != nil {
		return nil, err
	}
	pkg, err := content.Read(ctx, pl.Source, origin, digest, b.Reference, true)
	if err != nil {
		return nil, err
	}
	objects, err := desired.Of(pkg, desired.Options{Package: oci.ToDNSLabel(origin.Ref.Repository)})
	if err != nil {
		return nil, err
	}
	return objects.Refs(), nil
}

// holders are the revisions that hold objects, but for those of packages that change:
// as the Lock says, or as the objects themselves say where it does not.
func (pl *Planner) holders(ctx context.Context, s *situation, out *Plan, brought [][]plan.Ref) (plan.Holders, error) {
	changing := s.changing(out)
	if holders, known := closure.Holders(s.lock.Packages, changing); known {
		return holders, nil
	}
	holders := plan.Holders{}
	for _, refs := range brought {
		live, err := pl.lenient(ctx, refs)
		if err != nil {
			return nil, err
		}
		for ref, l := range live {
			if c := controllerOf(l); c != nil && !changing[c.Name] {
				holders.Put(c.Kind+"/"+c.Name, ref)
			}
		}
	}
	return holders, nil
}

// changing are the revisions of the packages that change.
func (s *situation) changing(out *Plan) map[string]bool {
	names := map[string]bool{}
	for _, rev := range s.revisions {
		names[rev.GetName()] = true
	}
	for _, b := range out.Brings {
		for _, x := range s.others {
			if s.same(lockfile.Repository(x.PackageSpec().Package), lockfile.Repository(b.Reference)) {
				names[x.PackageStatus().CurrentRevision] = true
			}
		}
	}
	return names
}

func controllerOf(l plan.Live) *metav1.OwnerReference {
	return metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: l.Owners})
}
