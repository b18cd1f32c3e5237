package manifests

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Hold returns the owner references of a shared object after the requester takes control of
// it. The revision becomes the controller, and the package becomes an additional owner if
// want contains it. Hold removes earlier revisions, since the package keeps the object
// alive, and keeps all other owners.
//
// If another object is the controller, holder is that controller as "Kind/name", and the
// requester must not take the object. Hold compares owners by group, kind and name, never
// by UID, so that it also takes over an object that was restored from a backup.
func Hold(live []metav1.OwnerReference, who plan.Requester, want []metav1.OwnerReference) (owners []metav1.OwnerReference, holder string) {
	if c := controller(live); c != nil && !belongs(live, *c, who) {
		return nil, c.Kind + "/" + c.Name
	}
	for _, r := range live {
		if !who.IsFamily(r) && !isController(r) {
			owners = append(owners, r)
		}
	}
	return append(owners, want...), ""
}

// Join returns the owner references of an object that another package controls, with the
// package of the requester as an additional owner.
func Join(live []metav1.OwnerReference, who plan.Requester) []metav1.OwnerReference {
	owners := slices.DeleteFunc(slices.Clone(live), func(r metav1.OwnerReference) bool { return who.Package.Is(r) })
	return append(owners, who.Package.Reference(false))
}

// belongs reports whether the controller c is a revision of the requester's package. A deleted
// revision is no longer among the siblings, so a controller of the same kind also belongs to the
// package if the package, and no other package, is an owner of the object.
func belongs(live []metav1.OwnerReference, c metav1.OwnerReference, who plan.Requester) bool {
	if who.IsFamily(c) {
		return true
	}
	if !who.Revision.IsOfKind(c) {
		return false
	}
	ours, others := false, false
	for _, r := range live {
		switch {
		case who.Package.Is(r):
			ours = true
		case who.Package.IsOfKind(r):
			others = true
		}
	}
	return ours && !others
}

func controller(refs []metav1.OwnerReference) *metav1.OwnerReference {
	if i := slices.IndexFunc(refs, isController); i >= 0 {
		return &refs[i]
	}
	return nil
}

func isController(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller }

// EqualOwners reports whether a and b contain the same owners, in any order.
func EqualOwners(a, b []metav1.OwnerReference) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.ContainsFunc(b, func(y metav1.OwnerReference) bool {
			return x.APIVersion == y.APIVersion && x.Kind == y.Kind && x.Name == y.Name && x.UID == y.UID && isController(x) == isController(y)
		}) {
			return false
		}
	}
	return true
}
