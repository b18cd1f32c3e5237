package planner

import (
	"context"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/packagediff"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// kindChanges returns the changes of the kinds that both the active revision and the new content define, if a transition
// activates the new content. It returns none if the content of the active revision cannot be read: the plan has the changes of
// objects in any case.
func (pl *Planner) kindChanges(ctx context.Context, s *clusterState, pkg *xpkg.Package, t revision.Transition) []crddiff.ChangedCRD {
	if active := t.Active(); active == nil || active.GetName() != t.Current.GetName() {
		return nil
	}
	for _, rev := range s.revisions {
		if rev.RevisionSpec().DesiredState != v1.RevisionActive || rev.GetName() == t.Current.GetName() {
			continue
		}
		former, _, err := pl.packages().ReadRevision(ctx, rev)
		if err != nil {
			return nil
		}
		changed, err := packagediff.Kinds(former, pkg)
		if err != nil {
			return nil
		}
		return changed
	}
	return nil
}

// CountKindChanges returns the number of changes of kinds in each class.
func (p *Plan) CountKindChanges() map[crddiff.Class]int {
	out := map[crddiff.Class]int{}
	for _, k := range p.KindChanges {
		for _, c := range k.Changes {
			out[c.Class]++
		}
	}
	return out
}
