package planner

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// additions returns a reader of the packages that dependency resolution installs or moves.
func (pl *planning) additions(s *clusterState) state.AdditionReader {
	return state.AdditionReader{Packages: pl.packages(), Installed: s.installed, CheckCrossplane: pl.crossplane().Check}
}

// preflight adds a refusal for each object of an added package that can never be established:
// another package holds it, or two of the packages contain it. The manager then installs none of
// them.
func (pl *planning) preflight(
	ctx context.Context, s *clusterState, p v1.Package, pkg *xpkg.Package, content oci.Digest, changes []graph.Change,
	out *Plan,
) error {
	if len(changes) == 0 {
		return nil
	}
	own, err := desired.Of(pkg, desired.Options{Package: p.GetName()})
	if err != nil {
		return err
	}
	group := install.Group{
		Candidate: install.Candidate{Set: revision.Set{Package: p}, Content: pkg, Objects: own}, Seen: s.graph,
		Place: s.place, Contents: s.contents,
		Changes: changes, Additions: pl.additions(s).ReadAll(ctx, p, changes), WasHealthy: s.wasHealthyWith(content),
	}
	added := make([][]plan.Ref, len(changes))
	for i, a := range group.Additions {
		added[i] = a.Objects
		s.contents.Known[changes[i].To.Repository] = a.Package
		out.AddedPackages[i].Signers = a.Signers
		if a.Package != nil {
			if err := pl.movedKinds(ctx, s, changes[i], a.Package, out); err != nil {
				return err
			}
			own, err := pl.addition(ctx, s, p, changes[i], a.Package, &out.AddedPackages[i])
			name := out.AddedPackages[i].Short()
			for _, text := range own.Warnings {
				out.warn(name + ": " + text)
			}
			for _, f := range own.Findings {
				if f.Stage == install.Webhooks {
					out.warn(fmt.Sprintf("%s: %s. It waits until they are allowed: %s", name, f.Reason, f.Fix))
					continue
				}
				f.Package = name
				out.Findings = append(out.Findings, f)
			}
			if err != nil {
				out.warn(fmt.Sprintf("The changes of %s are not known: %v.", changes[i].Reference(), err))
			}
		}
		switch {
		case signature.IsRefused(a.Err):
			return a.Err
		case a.Err == nil, errors.Is(a.Err, rbac.ErrReservedDefinition): // The check of the definitions has found it.
		case out.refuse(install.Crossplane, a.Err):
		default:
			out.warn(fmt.Sprintf("The objects of %s are not known: %v.", changes[i].Reference(), a.Err))
		}
	}
	if group.Holders, err = pl.holders(ctx, s, changes, added); err != nil {
		return err
	}
	after, conflicts, err := group.Check(ctx)
	if err == nil {
		err = pl.warnOfKinds(ctx, s, after, changes, out)
	}
	if err != nil {
		return err
	}
	known := map[plan.Ref]bool{}
	for _, r := range out.Objects.Refusals {
		known[r.Ref] = true
	}
	for _, r := range conflicts {
		if !known[r.Ref] {
			known[r.Ref] = true
			out.Objects.Refusals = append(out.Objects.Refusals, r)
		}
	}
	for _, a := range out.AddedPackages {
		for _, r := range a.Objects.Refusals {
			if !known[r.Ref] {
				known[r.Ref] = true
				out.Objects.Refusals = append(out.Objects.Refusals, r)
			}
		}
	}
	return nil
}

// addition sets the changes of the objects, the permissions and the runtime of a package that is
// installed or moved for a parent, and returns its own plan, with findings and warnings.
func (pl *planning) addition(
	ctx context.Context, s *clusterState, parent v1.Package, c graph.Change, pkg *xpkg.Package, out *AddedPackage,
) (own Plan, err error) {
	p := c.NewPackage(parent)
	names := c.Names()
	p.SetName(names[0])
	if _, err := s.installed(ctx, p.PackageKind(), names[0]); err == nil {
		p.SetName(names[1])
	}
	var revisions []v1.PackageRevision
	if c.Existing != nil {
		live, err := s.installed(ctx, c.Existing.Kind, c.Existing.Name)
		if err != nil {
			return own, err
		}
		p = live.DeepCopyObject().(v1.Package)
		p.PackageSpec().Package = c.Reference()
		if revisions, err = pl.listRevisions(ctx, p.PackageKind(), p.GetName()); err != nil {
			return own, err
		}
	}
	p.SetGeneration(p.GetGeneration() + 1)
	t, err := pl.transition(p, pkg, c.To.Digest.String(), revisions)
	if err != nil {
		return own, err
	}
	own.Package = Package{Kind: p.PackageKind(), Name: p.GetName(), To: &Version{Reference: c.Reference()}}
	if err := pl.check(ctx, s, p, pkg, t, &own); err != nil {
		return own, err
	}
	if err := pl.objects(ctx, s, p, pkg, t, &own); err != nil {
		return own, err
	}
	pl.runtime(ctx, s, p, pkg, t, c.To.Digest, &own)
	c.ExplainAdoption(own.Objects.Refusals)
	out.Objects, out.Permissions, out.LeftOut = own.Objects, own.Permissions, own.LeftOut
	out.KindChanges = pl.kindChanges(ctx, revisions, pkg, t)
	return own, nil
}

// installed returns another package of the cluster, and fails if it does not exist.
func (s *clusterState) installed(_ context.Context, kind, name string) (v1.Package, error) {
	for _, x := range s.others {
		if x.PackageKind() == kind && x.GetName() == name {
			return x, nil
		}
	}
	return nil, fmt.Errorf("there is no %s %s", kind, name)
}

// holders returns the packages that own objects, except for packages that change. It reads them
// from the Lock or, if the Lock does not list all objects, from the owner references of the added
// objects. An object that is being deleted has no holder: the plan of its package refuses it.
func (pl *planning) holders(
	ctx context.Context, s *clusterState, changes []graph.Change, added [][]plan.Ref,
) (plan.Holders, error) {
	changing := s.changingOwners(changes)
	if holders, known := graph.Holders(s.lock.Packages, s.packagesByRevision(), changing); known {
		return holders, nil
	}
	holders := plan.Holders{}
	for _, refs := range added {
		live, err := pl.metadataIgnoringMissingKinds(ctx, refs)
		if err != nil {
			return nil, err
		}
		for ref, l := range live {
			if l.Deleting {
				continue
			}
			if c := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: l.Owners}); c != nil && !changing[c.Name] &&
				!changing[c.Kind+"/"+c.Name] {
				holders.Put(c.Kind+"/"+c.Name, ref)
			}
		}
	}
	return holders, nil
}

// changingOwners returns the packages that change, as "Kind/name", and the names of their revisions.
func (s *clusterState) changingOwners(changes []graph.Change) map[string]bool {
	names := map[string]bool{}
	if s.live != nil {
		names[holderName(s.live)] = true
	}
	for _, rev := range s.revisions {
		names[rev.GetName()] = true
	}
	for _, c := range changes {
		for _, x := range s.others {
			if s.sameRepository(oci.RepositoryName(x.PackageSpec().Package), oci.RepositoryName(c.Reference())) {
				names[holderName(x)], names[x.PackageStatus().CurrentRevision] = true, true
			}
		}
	}
	return names
}

// packagesByRevision returns the other packages, as "Kind/name", by the names of their current revisions.
func (s *clusterState) packagesByRevision() map[string]string {
	out := map[string]string{}
	for _, x := range s.others {
		out[x.PackageStatus().CurrentRevision] = holderName(x)
	}
	return out
}

// holderName returns a package in the form of refusals.
func holderName(p v1.Package) string { return p.PackageKind() + "/" + p.GetName() }
