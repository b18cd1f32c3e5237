package revision

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Action is the kind of a write to a revision.
type Action string

// The writes to revisions.
const (
	Create     Action = "create"
	Activate   Action = "activate"
	Deactivate Action = "deactivate"
	// Update changes the fields that a revision copies from its package, or its owner.
	Update Action = "update"
	// Number renumbers a revision that a user activated.
	Number Action = "number"
	// Collect deletes a revision beyond the history limit.
	Collect Action = "collect"
)

// Step is one write to a revision.
type Step struct {
	Action Action
	// Revision is the revision as the step writes it, or the one that it deletes. Its
	// resourceVersion is the one that was read.
	Revision v1.PackageRevision
}

// Transition contains the changes that bring the revisions of a package from their current
// state to the requested one.
type Transition struct {
	Decision
	// Current is the revision of the package's content after the transition.
	Current v1.PackageRevision
	// Before are the existing revisions, and After the revisions after all steps, including those
	// that are collected.
	Before, After []v1.PackageRevision
	// Steps are the writes, in order. The old revision is deactivated before the new one is
	// activated, so that two revisions are never active at once.
	Steps []Step
}

// Next returns the transition of a package whose content has the given digest and metadata, and uses the given kinds of
// other packages.
func Next(
	p v1.Package, meta xpkg.Meta, digest string, existing []v1.PackageRevision, uses ...activation.Uses,
) Transition {
	name := Name(p, digest, existing)
	policy := PolicyOf(p)
	policy.Failed = failed(p, existing)
	t := Transition{
		Decision: Decide(name, States(existing, name), policy), Before: existing, After: slices.Clone(existing),
	}
	t.own(p, name)
	for _, n := range t.Deactivate {
		rev := t.copyOf(n)
		recordHealth(p, rev)
		rev.RevisionSpec().DesiredState = v1.RevisionInactive
		t.add(Deactivate, rev)
	}
	t.ensureCurrent(p, meta, digest, name, uses)
	if t.Activate != "" && t.Activate != name {
		t.activate()
	}
	for _, n := range t.Collect {
		t.Steps = append(t.Steps, Step{Collect, t.find(n)})
	}
	return t
}

// failed returns the revisions of a package that, or whose runtimes, were not healthy when they last ran. The health of
// an inactive revision's objects is not considered: it describes their release, which is retried.
func failed(p v1.Package, revisions []v1.PackageRevision) []string {
	var out []string
	for _, rev := range revisions {
		if rev.GetName() != p.PackageStatus().LastHealthyRevision &&
			(HasFailed(rev) || rev.GetCondition(v1.TypeRuntimeHealthy).Status == corev1.ConditionFalse) {
			out = append(out, rev.GetName())
		}
	}
	return out
}

// own adds steps that make the package the owner of the revisions that stay, except for the current
// one, which ensureCurrent updates. Only revisions from a backup or of Crossplane core need such a
// step.
func (t *Transition) own(p v1.Package, current string) {
	for _, rev := range t.Before {
		if rev.GetName() == current || slices.Contains(t.Collect, rev.GetName()) {
			continue
		}
		if owned := t.copyOf(rev.GetName()); Own(p, owned) {
			t.add(Update, owned)
		}
	}
}

// ensureCurrent adds the step that creates, activates or updates the revision of the package's
// content, if one is needed.
func (t *Transition) ensureCurrent(p v1.Package, meta xpkg.Meta, digest, name string, uses []activation.Uses) {
	existing := t.find(name)
	t.Current = Current(p, meta, digest, name, existing, t.Decision)
	for _, u := range uses {
		recordUses(t.Current, u)
	}
	switch {
	case existing == nil:
		t.add(Create, t.Current)
	case equality.Semantic.DeepEqual(existing, t.Current):
	case t.Activate == name && existing.RevisionSpec().DesiredState != v1.RevisionActive:
		t.add(Activate, t.Current)
	default:
		t.add(Update, t.Current)
	}
}

// activate adds the step that activates a revision other than the current one, as after a rollback,
// or that renumbers a revision that a user activated.
func (t *Transition) activate() {
	rev := t.copyOf(t.Activate)
	spec, action := rev.RevisionSpec(), Activate
	if spec.DesiredState == v1.RevisionActive {
		if spec.Revision == t.Number {
			return
		}
		action = Number
	}
	spec.DesiredState, spec.Revision = v1.RevisionActive, t.Number
	t.add(action, rev)
}

// add appends a step, and updates After with its revision.
func (t *Transition) add(action Action, rev v1.PackageRevision) {
	t.Steps = append(t.Steps, Step{action, rev})
	for i := range t.After {
		if t.After[i].GetName() == rev.GetName() {
			t.After[i] = rev
			return
		}
	}
	t.After = append(t.After, rev)
}

// Active returns the active revision after the transition, or nil.
func (t *Transition) Active() v1.PackageRevision { return t.find(t.Activate) }

// Writes reports whether a step writes a revision.
func (t *Transition) Writes(name string) bool {
	return slices.ContainsFunc(t.Steps, func(s Step) bool { return s.Revision.GetName() == name })
}

// Deactivates reports whether the transition makes a revision inactive.
func (t *Transition) Deactivates(name string) bool { return slices.Contains(t.Deactivate, name) }

func (t *Transition) find(name string) v1.PackageRevision {
	for _, rev := range t.After {
		if rev.GetName() == name {
			return rev
		}
	}
	return nil
}

func (t *Transition) copyOf(name string) v1.PackageRevision {
	return t.find(name).DeepCopyObject().(v1.PackageRevision)
}
