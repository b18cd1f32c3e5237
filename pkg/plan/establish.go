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
	// new version dropped lives until the package itself goes. Objects that go with
	// their revision have none.
	Package Owner
	// Siblings are the names of all revisions of the same package. Control
	// moves freely between them.
	Siblings []string
	// Adopts are the objects of users that the package may adopt, as [Ref.ObjectName]
	// returns them.
	Adopts []string
}

// Establish plans the objects of an active revision. Every object gets the revision as its controller and the
// package as an additional owner. Known is the record of the objects when they were last written.
func Establish(desired []Desired, live map[Ref]Live, known map[Ref]Written, who Requester) Plan {
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
		if c, changed := who.control(d, l, drifted(l, known)); changed {
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
		Action: Create, Ref: d.Ref, Labels: d.Labels, Annotations: d.annotations(),
		Owners: who.owners(nil),
	}
}

// owners returns the owners of an object of an active revision.
func (who Requester) owners(live []metav1.OwnerReference) []metav1.OwnerReference {
	switch {
	case who.Package == Owner{}:
		return set(live, who.Revision, true)
	case len(live) == 0:
		return []metav1.OwnerReference{who.Revision.Reference(true), who.Package.Reference(false)}
	}
	return set(set(live, who.Package, false), who.Revision, true)
}

// annotations returns the annotations of the package and the records that are stored on the object.
func (d Desired) annotations() map[string]string {
	out := maps.Clone(d.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	out[ContentDigestAnnotation] = d.Digest
	if d.CABundleHash != "" {
		out[CABundleHashAnnotation] = d.CABundleHash
	}
	return out
}

// isWritten reports whether a live object has the content and the CA bundle.
func (d Desired) isWritten(l Live) bool {
	return l.Annotations[ContentDigestAnnotation] == d.Digest && (d.CABundleHash == "" || l.Annotations[CABundleHashAnnotation] == d.CABundleHash)
}

// refuse returns the reason why a live object may not be written.
func (who Requester) refuse(l Live) (Refusal, bool) {
	if l.Deleting {
		return Refusal{Ref: l.Ref, Cause: Deleting, Reason: fmt.Sprintf("%s %s is being deleted", l.Ref.Kind, l.Ref.Name)}, true
	}
	if who.hasAdopted(l.Annotations) {
		return Refusal{}, false
	}
	holder := holderOf(l)
	if holder == "" {
		if refusal, refused := who.refuseSystem(l); refused {
			return refusal, true
		}
		return who.refuseAdoption(l)
	}
	if c := controller(l.Owners); c != nil && who.IsFamily(*c) {
		return Refusal{}, false
	}
	return Refusal{Ref: l.Ref, Holder: holder, Reason: fmt.Sprintf("%s %s belongs to %s", l.Ref.Kind, l.Ref.Name, holder)}, true
}

// refuseSystem refuses a CRD that the package manager or Crossplane created for itself.
// Uninstalling a package that owned it would delete every resource of its kind.
func (who Requester) refuseSystem(l Live) (Refusal, bool) {
	if l.Ref.Kind != DefinitionKind || slices.ContainsFunc(l.Owners, who.IsFamily) {
		return Refusal{}, false
	}
	holder := ""
	switch {
	case l.Annotations[ManagerAnnotation] != "":
		holder = "the package manager"
	case len(l.Owners) == 0 && l.CrossplaneWrote:
		holder = "Crossplane"
	default:
		return Refusal{}, false
	}
	return Refusal{Ref: l.Ref, Holder: holder, Reason: fmt.Sprintf("%s %s belongs to %s, which created it", l.Ref.Kind, l.Ref.Name, holder)}, true
}

// IsFamily reports whether a reference names a revision of the same package, or
// the package.
func (who Requester) IsFamily(r metav1.OwnerReference) bool {
	return who.Revision.Is(r) || who.Package.Is(r) || who.IsSibling(r)
}

// IsSibling reports whether a reference names one of the siblings.
func (who Requester) IsSibling(r metav1.OwnerReference) bool {
	return who.Revision.IsOfKind(r) && slices.Contains(who.Siblings, r.Name)
}

// drifted reports whether another client may have changed the content of an object since it was last written. The
// generation counts such changes. Without a recorded generation, as after a crash or a restore, managed fields show
// the writers.
func drifted(l Live, known map[Ref]Written) bool {
	w, ok := known[l.Ref]
	if !ok || w.UID != l.UID || w.Generation == 0 {
		return l.OthersWrote
	}
	return w.Generation != l.Generation
}

// control plans one live object of an active revision.
func (who Requester) control(d Desired, l Live, drifted bool) (Change, bool) {
	c := Change{
		Action: who.action(d, l, drifted), Ref: d.Ref, UID: l.UID, ResourceVersion: l.ResourceVersion,
		Owners: who.owners(l.Owners),
	}
	annotations := d.annotations()
	if who.keepsOwners(l) {
		c.Owners, annotations[AdoptedByAnnotation] = l.Owners, who.mark()
	}
	if drifted || !d.isWritten(l) {
		c.Labels = Merge(l.Labels, l.ManagedLabels, d.Labels)
		c.Annotations = Merge(l.Annotations, l.ManagedAnnotations, annotations)
		return c, true
	}
	c.MetadataOnly = true
	if trusts, ok := l.Annotations[CABundleHashAnnotation]; ok && d.CallsRuntime {
		annotations[CABundleHashAnnotation] = trusts
	}
	c.Labels, c.RemoveLabels = difference(l.Labels, l.ManagedLabels, d.Labels)
	c.Annotations, c.RemoveAnnotations = difference(l.Annotations, l.ManagedAnnotations, annotations)
	changed := !equalOwners(c.Owners, l.Owners) || len(c.Labels)+len(c.RemoveLabels)+len(c.Annotations)+len(c.RemoveAnnotations) > 0
	return c, changed
}

func (who Requester) action(d Desired, l Live, drifted bool) Action {
	c := controller(l.Owners)
	switch {
	case c == nil && l.Annotations[ContentDigestAnnotation] == "":
		return Adopt
	case c != nil && !who.Revision.Is(*c):
		return TakeOver
	case drifted && l.Annotations[ContentDigestAnnotation] == d.Digest:
		return Correct
	}
	return Update
}

// Merge keeps the keys of other clients, removes former keys of the manager, and adds the desired ones.
func Merge(live map[string]string, managed []string, desired map[string]string) map[string]string {
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

// difference returns the keys to set and to remove in live, so that it equals the result of Merge.
func difference(live map[string]string, managed []string, desired map[string]string) (put map[string]string, remove []string) {
	for k, v := range desired {
		if is, ok := live[k]; !ok || is != v {
			if put == nil {
				put = map[string]string{}
			}
			put[k] = v
		}
	}
	for _, k := range managed {
		_, wanted := desired[k]
		if _, there := live[k]; there && !wanted {
			remove = append(remove, k)
		}
	}
	slices.Sort(remove)
	return put, remove
}

// Deactivate plans the objects of an inactive revision: it stays or becomes an owner of the existing objects and
// controls none (packages guide, "spec.revisionActivationPolicy"). It never creates objects and never refuses.
func Deactivate(refs []Ref, live map[Ref]Live, who Requester) Plan {
	var p Plan
	for _, ref := range refs {
		l, exists := live[ref]
		if !exists || l.Deleting {
			continue
		}
		if who.isUserObject(l) || l.Annotations[AdoptedByAnnotation] != "" {
			p.Unchanged++
			continue
		}
		owners, action, c := set(l.Owners, who.Revision, false), Own, controller(l.Owners)
		if c == nil || who.IsFamily(*c) {
			// Objects that a newer version dropped live as long as the package, even if a backup has lost or changed their
			// owners.
			owners = set(owners, who.Package, false)
		}
		if c != nil && who.Revision.Is(*c) {
			action = Release
		}
		if equalOwners(owners, l.Owners) {
			p.Unchanged++
			continue
		}
		p.Changes = append(p.Changes, Change{
			Action: action, Ref: ref, MetadataOnly: true, UID: l.UID, ResourceVersion: l.ResourceVersion, Owners: owners,
		})
	}
	p.sort()
	return p
}

// Uninstall plans the deletion of a package with all its revisions. The garbage collector of the cluster carries it
// out: an object without other owners is deleted, and any other object stays.
func Uninstall(live map[Ref]Live, who Requester) Plan {
	var p Plan
	for ref, l := range live {
		var others []metav1.OwnerReference
		for _, o := range l.Owners {
			if !who.IsFamily(o) {
				others = append(others, o)
			}
		}
		if who.hasAdopted(l.Annotations) {
			p.Changes = append(p.Changes, release(l, others))
			continue
		}
		if len(others) == len(l.Owners) {
			p.Unchanged++
			continue
		}
		c := Change{Action: Delete, Ref: ref, UID: l.UID, ResourceVersion: l.ResourceVersion}
		if len(others) > 0 {
			c.Action, c.MetadataOnly, c.Owners = Leave, true, others
		}
		p.Changes = append(p.Changes, c)
	}
	p.sort()
	return p
}
