package preview

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// Install plans that a package is as want says. Of a package that is there, only
// the spec of want counts.
//
// It fails with what keeps the content from being read, and with WrongKind. What
// only keeps objects from being established is in the plan.
func (pl *Planner) Install(ctx context.Context, want v1.Package) (*Plan, error) {
	s, err := pl.read(ctx, want)
	if err != nil {
		return nil, err
	}
	p, err := s.wanted(want)
	if err != nil {
		return nil, err
	}
	f, err := pl.resolve(ctx, p, s.revisions)
	if err != nil {
		return nil, err
	}
	pkg, err := content.Read(ctx, pl.Source, f.origin, f.digest, p.PackageSpec().Package, revision.MayPull(p.PackageSpec().PackagePullPolicy))
	if err != nil {
		return nil, err
	}
	if err := revision.Installable(p, pkg.Meta); err != nil {
		return nil, err
	}
	pinned := pl.pin(s.live, p, f)
	if err := s.count(p); err != nil {
		return nil, err
	}
	out, err := s.startInstall(p, f)
	if err != nil {
		return nil, err
	}
	n := next(p, pkg.Meta, f.digest.String(), s.revisions)
	out.Revisions = n.changes
	if err := pl.dependencies(ctx, s, p, f.digest, pkg.Meta.Dependencies(), out); err != nil {
		return nil, err
	}
	pl.compatible(ctx, p, pkg.Meta, out)
	if err := pl.permissions(ctx, pkg, n, out); err != nil {
		return nil, err
	}
	if err := pl.objects(ctx, p, pkg, n, out); err != nil {
		return nil, err
	}
	if err := pl.foresee(ctx, s, p, pkg, out); err != nil {
		return nil, err
	}
	out.warn(notes(p, n, out)...)
	if pinned && p.PackageSpec().PackagePullPolicy == corev1.PullAlways {
		out.warn("The plan pins the digest, so the packagePullPolicy Always will not follow the tag.")
	}
	if now, ok := pl.tagNow(ctx, p, f); ok && now != f.digest {
		out.warn(fmt.Sprintf("The tag %s has moved: it stands for %s now. The plan stays with %s.", f.origin.Ref.Tag, now, f.digest))
	}
	return out, nil
}

// wanted is the package as it will be in the cluster.
func (s *situation) wanted(want v1.Package) (v1.Package, error) {
	want, err := withDefaults(want)
	if err != nil || s.live == nil {
		return want, err
	}
	p := s.live.DeepCopyObject().(v1.Package)
	*p.PackageSpec() = *want.PackageSpec()
	if r := p.RuntimeSpec(); r != nil {
		*r = *want.RuntimeSpec()
	}
	if s.adopts(want) {
		closure.Adopt(p)
	}
	return p, nil
}

// adopts reports whether a package that was installed because others need it is to be
// one that a person wants.
func (s *situation) adopts(want v1.Package) bool {
	return s.live != nil && closure.IsMade(s.live) && !closure.IsMade(want)
}

// count gives p the generation that it will have: the API server counts a change of
// the spec, and what was decided for one generation does not hold for the next.
func (s *situation) count(p v1.Package) error {
	if s.live == nil {
		p.SetGeneration(1)
		return nil
	}
	was, err := specOf(s.live)
	if err != nil {
		return err
	}
	is, err := specOf(p)
	if err == nil && !sameJSON(was, is) {
		p.SetGeneration(s.live.GetGeneration() + 1)
	}
	return err
}

// pin writes the digest into the reference, where the reference or what it stands
// for changes. What is installed at this very content stays as it is written.
func (pl *Planner) pin(live, p v1.Package, f found) bool {
	spec := p.PackageSpec()
	if !pl.Pin || len(f.origin.Places) == 0 || !f.origin.Ref.Digest.IsZero() {
		return false
	}
	if live != nil && live.PackageSpec().Package == spec.Package && digestNow(live) == f.digest.String() {
		return false
	}
	// A rewritten image has another name; the digest belongs to what was asked for.
	spec.Package += "@" + f.digest.String()
	return true
}

// startInstall is the plan of an install or update before what follows from the
// content.
func (s *situation) startInstall(p v1.Package, f found) (*Plan, error) {
	op := Install
	if s.live != nil {
		op = Update
	}
	out, err := s.start(op, p)
	if err != nil {
		return nil, err
	}
	out.Adopts = s.adopts(p)
	reference, digest := p.PackageSpec().Package, f.digest.String()
	out.Package.To = &Version{Reference: reference, Digest: digest}
	out.Content = &Content{Reference: reference, Resolved: reference, Digest: digest}
	if len(f.origin.Places) > 0 {
		out.Content.Resolved = f.origin.Ref.WithDigest(f.digest).String()
	}
	out.Package.Object, err = written(p)
	return out, err
}

// compatible says why a package is not made for the Crossplane that runs. A
// package manager that was told the version itself may decide otherwise.
func (pl *Planner) compatible(ctx context.Context, p v1.Package, meta format.Meta, out *Plan) {
	if meta.Crossplane == "" || p.PackageSpec().IgnoreCrossplaneConstraints {
		return
	}
	version, err := crossplane.Version(ctx, pl.Reader, pl.Namespace)
	if err == nil && version != "" {
		err = meta.Compatible(version)
	}
	switch {
	case format.ErrIncompatible.Is(err):
		out.Incompatible = err.Error()
	case err != nil:
		out.warn(fmt.Sprintf("Whether the package fits the Crossplane that runs is not known: %v.", err))
	}
}

// objects plans the objects in the way of the manager's controller of revisions.
func (pl *Planner) objects(ctx context.Context, p v1.Package, pkg *format.Package, n succession, out *Plan) error {
	wanted, err := desired.Of(pkg, revision.Additions(n.current, pl.Namespace))
	if err != nil {
		return err
	}
	live, err := pl.Cluster.Metadata(ctx, wanted.Refs())
	if err != nil {
		return err
	}
	who := revision.Requester(p, n.current, n.siblings)
	if n.decision.Activate != n.current.GetName() {
		if n.touched {
			out.Objects = plan.Deactivate(wanted.Refs(), live, who)
		}
		return nil
	}
	out.Objects = plan.Establish(wanted.Desired(), live, revision.Written(n.siblings), who)
	if out.Stops() {
		// The former revision lets go only when the new one holds everything.
		return nil
	}
	return pl.release(ctx, p, n, out)
}

// release adds what the revisions that become inactive let go, once the active one
// has taken its own.
func (pl *Planner) release(ctx context.Context, p v1.Package, n succession, out *Plan) error {
	taken := out.Objects.Changes
	for _, rev := range n.siblings {
		if !n.deactivates(rev) {
			continue
		}
		refs := revision.Objects(rev)
		if len(refs) == 0 {
			pkg, err := pl.contentOf(ctx, rev)
			if err != nil {
				out.warn(fmt.Sprintf("What the revision %s lets go is not known: %v.", rev.GetName(), err))
				continue
			}
			old, err := desired.Of(pkg, revision.Additions(rev, pl.Namespace))
			if err != nil {
				return err
			}
			refs = old.Refs()
		}
		live, err := pl.Cluster.Metadata(ctx, refs)
		if err != nil && !apply.ErrKindNotServed.Is(err) {
			return err
		}
		released := plan.Deactivate(refs, after(live, taken, refs), revision.Requester(p, rev, n.siblings))
		out.Objects.Changes = append(out.Objects.Changes, released.Changes...)
	}
	return nil
}

// after gives the live objects as they are once the changes are carried out.
func after(live map[plan.Ref]plan.Live, changes []plan.Change, refs []plan.Ref) map[plan.Ref]plan.Live {
	out := map[plan.Ref]plan.Live{}
	maps.Copy(out, live)
	concerned := map[plan.Ref]bool{}
	for _, ref := range refs {
		concerned[ref] = true
	}
	for _, c := range changes {
		if concerned[c.Ref] {
			l := out[c.Ref]
			l.Ref, l.Owners = c.Ref, c.Owners
			out[c.Ref] = l
		}
	}
	return out
}
