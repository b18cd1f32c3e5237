package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/packagediff"
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

// objects adds to the plan the changes of the objects of the active revision, and of the revisions
// that become inactive.
func (pl *planning) objects(
	ctx context.Context, s *clusterState, p v1.Package, pkg *xpkg.Package, t revision.Transition, out *Plan,
) error {
	active, current := t.Active(), t.Current.GetName()
	var kept []plan.Ref
	var err error
	if active != nil {
		kept = revision.Objects(active)
	}
	if active != nil && (active.GetName() == current || t.Writes(active.GetName())) {
		if active.GetName() != current {
			if pkg, _, err = pl.packages().ReadRevision(ctx, active); err != nil {
				out.warn(fmt.Sprintf("The objects of the revision %s are not known: %v.", active.GetName(), err))
				return nil
			}
		}
		if kept, err = pl.establish(ctx, s, p, pkg, active, t, out); err != nil {
			return err
		}
		if active.GetName() == current && out.Blocked() {
			// The replaced revision releases its objects only once the new one controls all of its
			// own.
			return nil
		}
	}
	for _, rev := range t.After {
		if rev.GetName() == t.Activate || rev.GetName() != current && !t.Deactivates(rev.GetName()) {
			continue
		}
		if err := pl.release(ctx, revision.Set{Revision: rev, Package: p, Siblings: t.After}, kept, out); err != nil {
			return err
		}
	}
	return nil
}

// establish adds to the plan the changes of the objects of the active revision, and returns the
// objects.
func (pl *planning) establish(
	ctx context.Context, s *clusterState, p v1.Package, pkg *xpkg.Package, active v1.PackageRevision,
	t revision.Transition, out *Plan,
) ([]plan.Ref, error) {
	wanted, kinds, err := pl.desired(ctx, p, pkg, active, t.Before)
	if err != nil {
		return nil, err
	}
	if err := out.setKinds(s.live, p, pkg, kinds, t.Before); err != nil {
		return nil, err
	}
	live, err := pl.Cluster.Metadata(ctx, wanted.Refs())
	if err != nil {
		return nil, err
	}
	established := plan.Establish(
		wanted.Desired(), live, revision.Written(t.After), revision.Requester(p, active, t.After),
	)
	composed, err := wanted.ComposedCRDs()
	if err != nil {
		return nil, err
	}
	reserved, err := s.reserved(p, slices.Concat(wanted.Refs(), composed), live)
	if err != nil {
		return nil, err
	}
	established.Refusals = append(established.Refusals, reserved...)
	out.Objects, err = pl.Cluster.Preflight(ctx, established, wanted.Content, apply.Breaks{
		Accepted: revision.AcceptedBreaks(p, active), Command: out.command(),
	})
	if err == nil && kinds != nil && len(kinds.Dropped) > 0 {
		if err = pl.deactivate(ctx, kinds, revision.Requester(p, active, t.After), out); err != nil {
			return nil, err
		}
	}
	if !s.hasRuntime(p, pkg) {
		out.Objects = withoutWebhooks(out.Objects, live, revision.Requester(p, active, t.After))
		out.LeftOut = s.leftOut(p, wanted.Refs())
	}
	if text := s.unservedConversions(p, wanted.Desired(), out.Objects.Changes); text != "" {
		out.warn(text)
	}
	out.warn(concerns(pkg, out.Objects.Changes)...)
	return wanted.Refs(), err
}

// desired returns the objects that a revision installs, and the kinds among them, as the manager selects them. Before
// are the revisions of the package in the cluster.
func (pl *planning) desired(
	ctx context.Context, p v1.Package, pkg *xpkg.Package, rev v1.PackageRevision, before []v1.PackageRevision,
) (*desired.Objects, *activation.Selection, error) {
	packages := pl.packages()
	kinds, err := packages.Kinds.Select(ctx, p, pkg, find(before, rev.GetName()))
	if err != nil {
		return nil, nil, err
	}
	objects, err := packages.Desired(pkg, rev, kinds)
	return objects, kinds, err
}

// deactivate adds to the plan the deletions of the CRDs of the kinds that a revision deactivates.
func (pl *planning) deactivate(
	ctx context.Context, kinds *activation.Selection, who plan.Requester, out *Plan,
) error {
	live, err := pl.Cluster.Metadata(ctx, kinds.DroppedRefs())
	out.Objects.Changes = append(out.Objects.Changes, activation.Deactivations(live, who)...)
	return err
}

// LeftOut has the objects of a package that are not installed.
type LeftOut struct {
	// Objects are in the form "Kind name".
	Objects []string `json:"objects"`
	Reason  string   `json:"reason"`
	Fix     string   `json:"fix"`
}

// String describes the objects in a sentence, with the reason and the fix.
func (l LeftOut) String() string {
	return strings.Join(l.Objects, ", ") + ": not installed, because " + l.Reason + ". " + l.Fix
}

// leftOut returns the webhook configurations among the objects of a package without a runtime, or nil.
func (s *clusterState) leftOut(p v1.Package, refs []plan.Ref) *LeftOut {
	var hooks []string
	for _, ref := range refs {
		if plan.IsWebhookConfiguration(ref) {
			hooks = append(hooks, ref.Kind+" "+ref.Name)
		}
	}
	choice, _ := s.choice()
	switch name := (Package{Kind: p.PackageKind(), Name: p.GetName()}).Short(); {
	case len(hooks) == 0:
		return nil
	case choice.Of(p.PackageKind(), p.GetName()) == runtime.None:
		return &LeftOut{hooks, noRuntime(name), choice.AdviseRuntime(p.PackageKind(), p.GetName())}
	default:
		return &LeftOut{hooks, "the content of " + name +
			" has no runtime that serves them", "Report it to the maintainer of the package."}
	}
}

// noRuntime returns the reason why a package has no runtime with the package runtime None.
func noRuntime(name string) string {
	return "the manager runs no runtime for " + name + " (package runtime None)"
}

// unservedConversions returns a warning about the conversion webhooks of the changed objects of a package whose runtime
// the manager does not run, or "". The manager refuses conversion webhooks of content that has no runtime.
func (s *clusterState) unservedConversions(p v1.Package, wanted []plan.Desired, changes []plan.Change) string {
	converts := map[plan.Ref]bool{}
	for _, d := range wanted {
		converts[d.Ref] = d.CallsRuntime && !plan.IsWebhookConfiguration(d.Ref)
	}
	var objects []string
	for _, c := range changes {
		if converts[c.Ref] && !c.MetadataOnly && (c.Action == plan.Create || c.Action == plan.Update) {
			objects = append(objects, c.Ref.Kind+" "+c.Ref.Name)
		}
	}
	choice, known := s.choice()
	if len(objects) == 0 || !known {
		return ""
	}
	name, webhook := Package{Kind: p.PackageKind(), Name: p.GetName()}.Short(), "the conversion webhook of "+
		wording.Few(objects, maxConversions, ", ")
	const consequence = "the API server cannot read or write custom resources in another version than the stored one"
	switch choice.Of(p.PackageKind(), p.GetName()) {
	case runtime.External:
		return fmt.Sprintf(
			"The runtime of %s, which the manager does not run, must serve %s: until then, %s.", name, webhook, consequence,
		)
	case runtime.None:
		return fmt.Sprintf(
			"No runtime serves %s, because %s: %s. %s", webhook, noRuntime(name), consequence,
			choice.AdviseRuntime(p.PackageKind(), p.GetName()),
		)
	}
	return ""
}

// maxConversions limits the objects with conversion webhooks in a warning.
const maxConversions = 3

// withoutWebhooks returns the changes of the objects of a package without a runtime: as the manager does, it creates no
// webhook configurations, and deletes those that exist.
func withoutWebhooks(p plan.Plan, live map[plan.Ref]plan.Live, requester plan.Requester) plan.Plan {
	now, held := p.Hold()
	existing := map[plan.Ref]plan.Live{}
	for ref, l := range live {
		if plan.IsWebhookConfiguration(ref) {
			existing[ref] = l
		}
	}
	for _, c := range plan.Uninstall(existing, requester).Changes {
		if c.Action != plan.Delete {
			continue
		}
		now.Changes = append(now.Changes, c)
		if !slices.ContainsFunc(held.Changes, func(h plan.Change) bool { return h.Ref == c.Ref }) {
			now.Unchanged--
		}
	}
	return now
}

// release adds to the plan the changes of the objects that an inactive revision releases: all but
// the objects that the active one keeps.
func (pl *planning) release(ctx context.Context, inactive revision.Set, kept []plan.Ref, out *Plan) error {
	refs, err := pl.packages().ObjectRefs(ctx, inactive.Revision)
	if err != nil {
		out.warn(fmt.Sprintf(
			"The objects that the revision %s releases are not known: %v.", inactive.Revision.GetName(), err,
		))
		return nil
	}
	refs = plan.Without(refs, kept)
	live, err := pl.Cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return err
	}
	out.Objects.Changes = append(out.Objects.Changes, plan.Deactivate(refs, live, inactive.Requester()).Changes...)
	return nil
}

// kindChanges returns the changes of the kinds that both the active revision and the new content define, if a
// transition activates the new content. It returns none if the content of the active revision cannot be read: the plan
// has the changes of objects in any case.
func (pl *planning) kindChanges(
	ctx context.Context, revisions []v1.PackageRevision, pkg *xpkg.Package, t revision.Transition,
) []crddiff.ChangedCRD {
	if active := t.Active(); active == nil || active.GetName() != t.Current.GetName() {
		return nil
	}
	for _, rev := range revisions {
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

// AllKindChanges returns the changes of the kinds of the package, and of the packages that are moved for it.
func (p *Plan) AllKindChanges() []crddiff.ChangedCRD {
	out := slices.Clone(p.KindChanges)
	for _, a := range p.AddedPackages {
		out = append(out, a.KindChanges...)
	}
	return out
}

// CountBroken returns the number of custom resources that changes of kinds break, also of packages that are moved.
func (p *Plan) CountBroken() (n int) {
	for _, j := range p.Objects.Judgements {
		n += j.Broken + j.Accepted
	}
	for _, a := range p.AddedPackages {
		for _, j := range a.Objects.Judgements {
			n += j.Broken + j.Accepted
		}
	}
	return n
}

// CountKindChanges returns the number of changes of AllKindChanges in each class.
func (p *Plan) CountKindChanges() map[crddiff.Class]int {
	out := map[crddiff.Class]int{}
	for _, k := range p.AllKindChanges() {
		for _, c := range k.Changes {
			out[c.Class]++
		}
	}
	return out
}

// find returns the revision with a name, or nil.
func find(revisions []v1.PackageRevision, name string) v1.PackageRevision {
	for _, rev := range revisions {
		if rev.GetName() == name {
			return rev
		}
	}
	return nil
}
