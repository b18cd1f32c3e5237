package preview

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// succession is what becomes of the revisions of a package.
type succession struct {
	decision revision.Decision
	// current is the revision of the content, as it will be.
	current v1.PackageRevision
	// touched says that current is made or changed.
	touched bool
	// siblings are all revisions, the current one among them, and before those that
	// there are now.
	siblings, before []v1.PackageRevision
	changes          []RevisionChange
}

// next decides in the way of the manager's controller of packages.
func next(p v1.Package, meta format.Meta, digest string, revisions []v1.PackageRevision) succession {
	name := oci.FriendlyID(p.GetName(), revision.Key(p, digest))
	n := succession{
		decision: revision.Decide(name, revision.States(revisions, name), revision.PolicyOf(p)),
		siblings: slices.Clone(revisions), before: revisions,
	}
	d := n.decision
	for _, rev := range revisions {
		if rev.GetName() != name && !slices.Contains(d.Collect, rev.GetName()) && revision.Own(p, rev.DeepCopyObject().(v1.PackageRevision)) {
			n.add(UpdateRevision, rev, rev.RevisionSpec().DesiredState)
		}
	}
	for _, r := range d.Deactivate {
		n.add(DeactivateRevision, n.find(r), v1.RevisionInactive)
	}
	n.ensure(p, meta, digest, name)
	if d.Activate != "" && d.Activate != name {
		if rev := n.find(d.Activate); rev.RevisionSpec().Revision != d.Number {
			n.add(NumberRevision, rev, v1.RevisionActive)
			n.changes[len(n.changes)-1].Number = d.Number
		}
	}
	for _, r := range d.Collect {
		n.add(CollectRevision, n.find(r), v1.RevisionInactive)
	}
	return n
}

// ensure makes the current revision what it has to be.
func (n *succession) ensure(p v1.Package, meta format.Meta, digest, name string) {
	before := n.find(name)
	n.current = revision.Current(p, meta, digest, name, before, n.decision)
	spec, action := n.current.RevisionSpec(), UpdateRevision
	switch {
	case before == nil:
		action = CreateRevision
		n.siblings = append(n.siblings, n.current)
	case n.decision.Activate == name && before.RevisionSpec().DesiredState != v1.RevisionActive:
		action = ActivateRevision
	}
	if n.touched = before == nil || !equality.Semantic.DeepEqual(before, n.current); n.touched {
		n.add(action, n.current, spec.DesiredState)
	}
}

func (n *succession) add(action RevisionAction, rev v1.PackageRevision, state v1.RevisionState) {
	n.changes = append(n.changes, RevisionChange{
		Action: action, Name: rev.GetName(), Number: rev.RevisionSpec().Revision, State: state, Digest: rev.RevisionSpec().Digest,
	})
}

// find gives the revision with a name, or nil.
func (n *succession) find(name string) v1.PackageRevision {
	if i := slices.IndexFunc(n.siblings, func(r v1.PackageRevision) bool { return r.GetName() == name }); i >= 0 {
		return n.siblings[i]
	}
	return nil
}

func (n *succession) deactivates(rev v1.PackageRevision) bool {
	return slices.Contains(n.decision.Deactivate, rev.GetName())
}
