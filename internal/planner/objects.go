package planner

import (
	"context"
	"errors"
	"fmt"
	"maps"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// revisionChanges returns the writes of a transition.
func revisionChanges(t revision.Transition) []RevisionChange {
	var out []RevisionChange
	for _, s := range t.Steps {
		spec := s.Revision.RevisionSpec()
		out = append(out, RevisionChange{
			Action: s.Action, Name: s.Revision.GetName(), Number: spec.Revision, State: spec.DesiredState, Digest: spec.Digest,
		})
	}
	return out
}

// objects plans the objects of the active revision, and of the revisions that become or stay inactive.
func (pl *Planner) objects(ctx context.Context, p v1.Package, pkg *xpkg.Package, t revision.Transition, out *Plan) error {
	active, current := t.Active(), t.Current.GetName()
	if active != nil && (active.GetName() == current || t.Writes(active.GetName())) {
		if active.GetName() != current {
			var err error
			if pkg, _, err = pl.packages().ReadRevision(ctx, active); err != nil {
				out.warn(fmt.Sprintf("The objects of the revision %s are not known: %v.", active.GetName(), err))
				return nil
			}
		}
		if err := pl.establish(ctx, p, pkg, active, t, out); err != nil {
			return err
		}
		if active.GetName() == current && out.Blocked() {
			// The replaced revision releases its objects only when the new one holds all.
			return nil
		}
	}
	for _, rev := range t.After {
		if rev.GetName() == t.Activate || rev.GetName() != current && !t.Deactivates(rev.GetName()) {
			continue
		}
		if err := pl.release(ctx, p, rev, t, out); err != nil {
			return err
		}
	}
	return nil
}

// establish plans the objects of the active revision.
func (pl *Planner) establish(ctx context.Context, p v1.Package, pkg *xpkg.Package, active v1.PackageRevision, t revision.Transition, out *Plan) error {
	wanted, err := pl.packages().Desired(pkg, active)
	if err != nil {
		return err
	}
	live, err := pl.Cluster.Metadata(ctx, wanted.Refs())
	if err != nil {
		return err
	}
	established := plan.Establish(wanted.Desired(), live, revision.Written(t.After), revision.Requester(p, active, t.After))
	out.Objects, err = pl.Cluster.Preflight(ctx, established, wanted.Content)
	return err
}

// release adds the changes of the objects that an inactive revision owns and does not control, after
// the changes that are planned already.
func (pl *Planner) release(ctx context.Context, p v1.Package, rev v1.PackageRevision, t revision.Transition, out *Plan) error {
	refs, err := pl.packages().ObjectRefs(ctx, rev)
	if err != nil {
		out.warn(fmt.Sprintf("The objects that the revision %s releases are not known: %v.", rev.GetName(), err))
		return nil
	}
	live, err := pl.Cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return err
	}
	released := plan.Deactivate(refs, after(live, out.Objects.Changes, refs), revision.Requester(p, rev, t.After))
	out.Objects.Changes = append(out.Objects.Changes, released.Changes...)
	return nil
}

// after returns live objects with the owners that they have after changes.
func after(live map[plan.Ref]plan.Live, changes []plan.Change, refs []plan.Ref) map[plan.Ref]plan.Live {
	out := maps.Clone(live)
	if out == nil {
		out = map[plan.Ref]plan.Live{}
	}
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
