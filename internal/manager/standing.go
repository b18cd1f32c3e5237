package manager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// standing is all packages with everything that they need, or may need again.
type standing struct {
	nodes []closure.Node
	// unknown names a package whose needs are not known, if there is one.
	unknown string
}

// standing reads what packages need: each of its active revision, or, as long as that
// is not settled, of all of its revisions. A package that goes, and revisions that its
// package has left behind, still need what they need: what they brought may be going,
// with the help of others. So do packages whose dependencies are not resolved, and
// those that only work with others.
func (w *world) standing(ctx context.Context, reader client.Reader) (standing, error) {
	var s standing
	for _, kind := range v1.PackageKinds() {
		packages, revisions, err := listed(ctx, reader, kind)
		if err != nil {
			return s, err
		}
		for _, p := range packages {
			s.add(w.stands(ctx, p, revisions[p.GetName()]))
			delete(revisions, p.GetName())
		}
		for name, left := range revisions {
			s.add(w.leftBehind(ctx, kind, name, left))
		}
	}
	return s, nil
}

func (s *standing) add(n closure.Node, known bool) {
	s.nodes = append(s.nodes, n)
	if !known {
		s.unknown = lower(n.Kind) + "/" + n.Name
	}
}

// stands is the node of a package, which nothing is skipped for.
func (w *world) stands(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) (closure.Node, bool) {
	images := needing(p, revisions)
	needs, known := w.needsOf(ctx, images)
	n, there := closure.Of(p, needs)
	if !there {
		n = closure.Node{Kind: p.PackageKind(), Name: p.GetName(), Package: lockfile.Package{Package: lockfile.Repository(p.PackageSpec().Package), Dependencies: lockfile.Needs(needs)}}
	}
	n.Skip = false
	return n, known && (len(images) > 0 || p.GetDeletionTimestamp() != nil)
}

// leftBehind is the node of a package that is gone, and of which revisions are not.
func (w *world) leftBehind(ctx context.Context, kind, name string, revisions []v1.PackageRevision) (closure.Node, bool) {
	needs, known := w.needsOf(ctx, contentsOf(revisions))
	return closure.Node{Kind: kind, Name: name, Package: lockfile.Package{Dependencies: lockfile.Needs(needs)}}, known
}

// image is content under the name by which it was asked for.
type image struct{ name, digest string }

func contentsOf(revisions []v1.PackageRevision) []image {
	var out []image
	for _, rev := range revisions {
		out = append(out, image{rev.RevisionSpec().Image, rev.RevisionSpec().Digest})
	}
	return out
}

// needing are the contents whose needs count for a package: that of its active
// revision when it is settled. Until then the package may go forward to what it asks
// for, or back to a revision that it has.
func needing(p v1.Package, revisions []v1.PackageRevision) []image {
	if rev := settled(p, revisions); rev != nil {
		return contentsOf([]v1.PackageRevision{rev})
	}
	out := contentsOf(revisions)
	if p.GetDeletionTimestamp() == nil {
		out = append(out, image{p.PackageSpec().Package, closure.Content(p).String()})
	}
	return out
}

// settled is the only active revision of a package, if it is what the package asks for
// and has been healthy since it was activated, so that nothing brings another one back.
func settled(p v1.Package, revisions []v1.PackageRevision) v1.PackageRevision {
	var only v1.PackageRevision
	for _, rev := range revisions {
		switch {
		case !active(rev):
		case only != nil:
			return nil
		default:
			only = rev
		}
	}
	status := p.PackageStatus()
	a := status.Activation
	if only == nil || p.GetDeletionTimestamp() != nil || status.ObservedGeneration != p.GetGeneration() || status.Rollback != nil ||
		only.RevisionSpec().Digest != closure.Content(p).String() || a == nil || a.Revision != only.GetName() || !a.Healthy {
		return nil
	}
	return only
}

// needsOf are the needs of some contents together, and whether all of them are known.
func (w *world) needsOf(ctx context.Context, images []image) (needs []format.Dependency, known bool) {
	known = true
	for _, i := range images {
		ref, err := oci.ParseReference(i.name, oci.ParseOptions{})
		if err != nil {
			return nil, false
		}
		more, ok := w.needs.look(ctx, ref, i.digest)
		known = known && ok
		for _, d := range more {
			d.Optional = false
			needs = append(needs, d)
		}
	}
	return needs, known
}
