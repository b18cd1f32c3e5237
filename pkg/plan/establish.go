package plan

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Requester is the owner of the objects of a revision, and its family.
type Requester struct {
	// Package is the controller of the objects of its active revision, so that the owners of objects do not
	// change with the version. It is empty for objects that are deleted with their revision.
	Package Owner
	// Revision is the controller of objects without a package.
	Revision Owner
	// Siblings are the names of all revisions of the package. Objects that they control, as with Crossplane's
	// package manager, belong to the package.
	Siblings []string
	// Adopts are the objects of users that the package may adopt, as [Ref.ObjectName]
	// returns them.
	Adopts []string
}

// Establish plans the objects of an active revision. The requester becomes the controller of every object.
// Known is the record of the last writes.
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
		Owners: who.owners(nil, true),
	}
}

// owner returns the controller of the objects of an active revision.
func (who Requester) owner() Owner {
	if who.Package == (Owner{}) {
		return who.Revision
	}
	return who.Package
}

// owners returns the owners of an object that the requester controls, or owns without control.
func (who Requester) owners(live []metav1.OwnerReference, control bool) []metav1.OwnerReference {
	if who.Package != (Owner{}) {
		live = slices.DeleteFunc(slices.Clone(live), who.isRevision)
	}
	return set(live, who.owner(), control)
}

// managedDefinition is the kind of the objects from which Crossplane core creates the CRDs of managed resources.
const managedDefinition = "ManagedResourceDefinition"

// ownersOfContent returns the owners of an object without the managed resource definition from which Crossplane core
// created it: the package contains the CRD itself.
func (l Live) ownersOfContent() []metav1.OwnerReference {
	if l.Ref.Kind != DefinitionKind {
		return l.Owners
	}
	source := Owner{APIVersion: "apiextensions.crossplane.io/v1alpha1", Kind: managedDefinition, Name: l.Ref.Name}
	return slices.DeleteFunc(slices.Clone(l.Owners), source.Is)
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
	return l.Annotations[ContentDigestAnnotation] == d.Digest &&
		(d.CABundleHash == "" || l.Annotations[CABundleHashAnnotation] == d.CABundleHash)
}

// refuse returns the reason why a live object must not be written, or nil.
func (who Requester) refuse(l Live) (Refusal, bool) {
	if l.Deleting {
		return Refusal{Ref: l.Ref, Cause: Deleting, Reason: fmt.Sprintf("%s %s is being deleted", l.Ref.Kind, l.Ref.Name)},
			true
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
	refusal := Refusal{
		Ref: l.Ref, Holder: holder, Reason: fmt.Sprintf("%s %s belongs to %s", l.Ref.Kind, l.Ref.Name, holder),
	}
	if controller(l.Owners) == nil {
		refusal.Fix = l.Ref.fixOfAdopted(holder)
	}
	return refusal, true
}

// refuseSystem returns a refusal for a CRD that the package manager or Crossplane created for itself. If a
// package owned it, uninstalling the package would delete every object of its kind.
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
	return Refusal{
		Ref: l.Ref, Holder: holder,
		Reason: fmt.Sprintf("%s %s belongs to %s, which created it", l.Ref.Kind, l.Ref.Name, holder),
	}, true
}

// IsFamily reports whether a reference names a revision of the same package, or
// the package.
func (who Requester) IsFamily(r metav1.OwnerReference) bool {
	return who.Package.Is(r) || who.isRevision(r)
}

// isRevision reports whether a reference names a revision of the same package.
func (who Requester) isRevision(r metav1.OwnerReference) bool {
	return who.Revision.Is(r) || who.IsSibling(r)
}

// IsSibling reports whether a reference names one of the siblings.
func (who Requester) IsSibling(r metav1.OwnerReference) bool {
	return who.Revision.IsOfKind(r) && slices.Contains(who.Siblings, r.Name)
}

// drifted reports whether another client may have changed the content of an object since it was last written.
// The generation counts such changes. Without a recorded generation, as after a crash or a restore, drifted
// uses the managed fields.
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
		Owners: who.owners(l.ownersOfContent(), true),
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
	changed := !equalOwners(c.Owners, l.Owners) ||
		len(c.Labels)+len(c.RemoveLabels)+len(c.Annotations)+len(c.RemoveAnnotations) > 0
	return c, changed
}

func (who Requester) action(d Desired, l Live, drifted bool) Action {
	c := controller(l.Owners)
	switch {
	case c == nil && l.Annotations[ContentDigestAnnotation] == "":
		return Adopt
	case c != nil && !who.owner().Is(*c):
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
func difference(
	live map[string]string, managed []string, desired map[string]string,
) (put map[string]string, remove []string) {
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

// Deactivate plans the objects that no active revision of a package contains. The package gives up control,
// so that another package can take control, and stays an owner: the objects exist as long as the package.
// Deactivate never creates objects and never returns refusals.
func Deactivate(refs []Ref, live map[Ref]Live, who Requester) Plan {
	var p Plan
	for _, ref := range refs {
		l, exists := live[ref]
		if !exists || l.Deleting {
			continue
		}
		action := Release
		if c := controller(l.Owners); c == nil {
			// A restore from a backup can lose or change the owners.
			action = Own
		} else if !who.IsFamily(*c) {
			p.Unchanged++
			continue
		}
		if who.isUserObject(l) || l.Annotations[AdoptedByAnnotation] != "" || action == Own && who.owns(l) {
			p.Unchanged++
			continue
		}
		p.Changes = append(p.Changes, Change{
			Action: action, Ref: ref, MetadataOnly: true, UID: l.UID, ResourceVersion: l.ResourceVersion,
			Owners: who.owners(l.Owners, false),
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

// Orphan plans the deletion of a package that leaves all its objects to the users: they lose the package and its
// revisions as owners, so that the garbage collector keeps them. A later install of the package maintains them again.
func Orphan(live map[Ref]Live, who Requester) Plan {
	p := Uninstall(live, who)
	for i := range p.Changes {
		if c := &p.Changes[i]; c.Action == Delete {
			c.Action, c.MetadataOnly = Leave, true
		}
	}
	return p
}
