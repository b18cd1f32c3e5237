package plan

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Requester is the revision that wants objects, and its family.
type Requester struct {
	// Revision becomes the controller of the objects while it is active.
	Revision Owner
	// Package owns every object beside its revisions, so that an object that a
	// new version dropped lives until the package itself goes.
	Package Owner
	// Siblings are the names of all revisions of the same package. Control
	// moves freely between them.
	Siblings []string
}

// Establish plans the objects of an active revision. Every object ends with the
// revision as its controller and the package as a further owner.
func Establish(desired []Desired, live map[Ref]Live, who Requester) Plan {
	var p Plan
	for _, d := range desired {
		l, exists := live[d.Ref]
		if !exists {
			p.Changes = append(p.Changes, create(d, who))
			continue
		}
		if refusal, refused := who.refuse(l); refused {
			p.Refusals = append(p.Refusals, refusal)
			continue
		}
		if c, changed := who.control(d, l); changed {
			p.Changes = append(p.Changes, c)
		} else {
			p.Unchanged++
		}
	}
	p.sort()
	return p
}

func create(d Desired, who Requester) Change {
	return Change{
		Action: Create, Ref: d.Ref, Labels: d.Labels, Annotations: withDigest(d.Annotations, d.Digest),
		Owners: []metav1.OwnerReference{who.Revision.reference(true), who.Package.reference(false)},
	}
}

func withDigest(annotations map[string]string, digest string) map[string]string {
	out := maps.Clone(annotations)
	if out == nil {
		out = map[string]string{}
	}
	out[ContentAnnotation] = digest
	return out
}

// refuse says why a live object may not be touched.
func (who Requester) refuse(l Live) (Refusal, bool) {
	if l.Deleting {
		return Refusal{Ref: l.Ref, Reason: fmt.Sprintf("%s %s is being deleted", l.Ref.Kind, l.Ref.Name)}, true
	}
	c := controller(l.Owners)
	if c == nil || who.family(*c) {
		return Refusal{}, false
	}
	holder := c.Kind + "/" + c.Name
	return Refusal{Ref: l.Ref, Holder: holder, Reason: fmt.Sprintf("%s %s belongs to %s", l.Ref.Kind, l.Ref.Name, holder)}, true
}

// family reports whether a reference names a revision of the same package, or
// the package.
func (who Requester) family(r metav1.OwnerReference) bool {
	if who.Revision.same(r) || who.Package.same(r) {
		return true
	}
	return group(r.APIVersion) == group(who.Revision.APIVersion) && r.Kind == who.Revision.Kind && slices.Contains(who.Siblings, r.Name)
}

// control plans one live object of an active revision.
func (who Requester) control(d Desired, l Live) (Change, bool) {
	owners := set(set(l.Owners, who.Package, false), who.Revision, true)
	sameContent := l.Annotations[ContentAnnotation] == d.Digest
	if sameContent && equalOwners(owners, l.Owners) {
		return Change{}, false
	}
	c := Change{
		Action: who.action(l), Ref: d.Ref, OwnersOnly: sameContent, UID: l.UID, ResourceVersion: l.ResourceVersion, Owners: owners,
	}
	if !sameContent {
		c.Labels = merge(l.Labels, l.ManagedLabels, d.Labels)
		c.Annotations = merge(l.Annotations, l.ManagedAnnotations, withDigest(d.Annotations, d.Digest))
	}
	return c, true
}

func (who Requester) action(l Live) Action {
	c := controller(l.Owners)
	switch {
	case c == nil && l.Annotations[ContentAnnotation] == "":
		return Adopt
	case c == nil || who.Revision.same(*c):
		return Update
	}
	return TakeOver
}

// merge keeps what others wrote, drops what we wrote and no longer want, and
// adds what is wanted.
func merge(live map[string]string, managed []string, desired map[string]string) map[string]string {
	out := maps.Clone(live)
	if out == nil {
		out = map[string]string{}
	}
	for _, k := range managed {
		delete(out, k)
	}
	maps.Copy(out, desired)
	return out
}

// Deactivate plans the objects of an inactive revision: it stays, or becomes, a
// plain owner of those that exist and controls none (packages guide,
// "spec.revisionActivationPolicy"). It never creates and never refuses.
func Deactivate(refs []Ref, live map[Ref]Live, who Requester) Plan {
	var p Plan
	for _, ref := range refs {
		l, exists := live[ref]
		if !exists || l.Deleting {
			continue
		}
		owners, action := set(l.Owners, who.Revision, false), Own
		if c := controller(l.Owners); c != nil && who.Revision.same(*c) {
			action = Release
		}
		if equalOwners(owners, l.Owners) {
			p.Unchanged++
			continue
		}
		p.Changes = append(p.Changes, Change{
			Action: action, Ref: ref, OwnersOnly: true, UID: l.UID, ResourceVersion: l.ResourceVersion, Owners: owners,
		})
	}
	p.sort()
	return p
}
