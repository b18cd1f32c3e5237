package shape

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/plan"
)

// Hold gives the owners of an object that revisions share, once who holds it: its
// revision controls the object, and the package owns it beside that, where want
// says so. Earlier revisions are left out, since the package keeps the object
// alive. What others own stays theirs.
//
// Holder is who controls the object instead, as "Kind/name"; then it is not for who
// to take. Owners are compared by group, kind and name, never by UID, so that an
// object that was restored from a backup is taken over.
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

// Join gives the owners of an object that another package controls, once who
// depends on it too: the package of who becomes one of its owners.
func Join(live []metav1.OwnerReference, who plan.Requester) []metav1.OwnerReference {
	owners := slices.DeleteFunc(slices.Clone(live), func(r metav1.OwnerReference) bool { return who.Package.Is(r) })
	return append(owners, who.Package.Reference(false))
}

// belongs reports whether the controller c is one of the revisions of who. One that
// is gone is not among the siblings any more; it was one if no other package has a
// share in the object.
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

// EqualOwners reports whether both are the same owners, in whatever order.
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
