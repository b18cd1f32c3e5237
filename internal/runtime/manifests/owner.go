package manifests

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Claim reports whether an existing object with the name of an object of a runtime is the object of the requester's
// package: the package or one of its revisions controls or owns it, or xpkg wrote it and it has no owner any more. The
// runtime must not write any other object. Holder is the owner to which such an object belongs: its controller, or
// another package. It is nil for an object that xpkg did not write.
//
// Claim compares owners by group, kind and name, never by UID, so that a package also takes over an object that was
// restored from a backup.
func Claim(live metav1.Object, who plan.Requester) (ours bool, holder *metav1.OwnerReference) {
	refs := live.GetOwnerReferences()
	controlled := false
	for i, r := range refs {
		if isController(r) && !belongs(refs, r, who) {
			return false, &refs[i]
		}
		controlled = controlled || isController(r)
	}
	if controlled {
		return true, nil
	}
	if i := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool {
		return (IsPackage(r) || who.Package.IsOfKind(r)) && !who.IsFamily(r)
	}); i >= 0 {
		return false, &refs[i]
	}
	return live.GetAnnotations()[plan.ContentDigestAnnotation] != "" || slices.ContainsFunc(refs, who.IsFamily), nil
}

// IsPackage reports whether an owner is a package or a package revision.
func IsPackage(r metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	return err == nil && gv.Group == v1.GroupVersion.Group
}

// Hold returns the owner references of an object of the requester's package after the requester takes control of it:
// want, and all other owners but the controller and earlier revisions, since the package keeps the object alive.
func Hold(live []metav1.OwnerReference, who plan.Requester, want []metav1.OwnerReference) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, r := range live {
		if !who.IsFamily(r) && !isController(r) {
			out = append(out, r)
		}
	}
	return append(out, want...)
}

// Join returns the owner references of a ServiceAccount that another package controls, with the package of the
// requester as an additional owner.
func Join(live []metav1.OwnerReference, who plan.Requester) []metav1.OwnerReference {
	owners := slices.DeleteFunc(slices.Clone(live), func(r metav1.OwnerReference) bool { return who.Package.Is(r) })
	return append(owners, who.Package.Reference(false))
}

// belongs reports whether the controller c is a revision of the requester's package. A deleted
// revision is no longer among the siblings, so a controller with the name of one also belongs to
// the package if the package, and no other package, is an owner of the object.
func belongs(live []metav1.OwnerReference, c metav1.OwnerReference, who plan.Requester) bool {
	if who.IsFamily(c) {
		return true
	}
	suffix := c.Name[strings.LastIndex(c.Name, "-")+1:]
	if !who.Revision.IsOfKind(c) || c.Name != oci.FriendlyID(who.Package.Name, suffix) {
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

func isController(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller }

// EqualOwners reports whether a and b contain the same owners, in any order.
func EqualOwners(a, b []metav1.OwnerReference) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.ContainsFunc(b, func(y metav1.OwnerReference) bool {
			return x.APIVersion == y.APIVersion && x.Kind == y.Kind && x.Name == y.Name && x.UID == y.UID &&
				isController(x) == isController(y)
		}) {
			return false
		}
	}
	return true
}
