package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Owner is the owner of a plan's objects: a package revision, its package, or an object of another API with a
// namespace.
type Owner struct {
	APIVersion string
	Kind       string
	// Namespace is empty for packages and revisions.
	Namespace string
	Name      string
	UID       types.UID
}

// Is reports whether a reference names the owner. It compares group, kind and name, but not the version and
// the UID: after a restore from a backup the UIDs differ, but the objects still belong to the same revision
// (packages v2 design, "A Note on Backup and Restore").
func (o Owner) Is(r metav1.OwnerReference) bool { return o.IsOfKind(r) && o.Name == r.Name }

// IsOfKind reports whether a reference names an owner of the same group and kind.
func (o Owner) IsOfKind(r metav1.OwnerReference) bool {
	return group(o.APIVersion) == group(r.APIVersion) && o.Kind == r.Kind
}

func group(apiVersion string) string {
	for i := range len(apiVersion) {
		if apiVersion[i] == '/' {
			return apiVersion[:i]
		}
	}
	return ""
}

// Reference returns the owner reference of o. Control blocks the deletion of the owner in the foreground
// until the object is gone, like the field blockOwnerDeletion.
func (o Owner) Reference(control bool) metav1.OwnerReference {
	r := metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}
	if control {
		r.Controller, r.BlockOwnerDeletion = new(true), new(true)
	}
	return r
}

// set returns the references with r, in place of an older reference of the same owner or at the end. If r
// controls, the former controller stays as an owner without control.
func set(refs []metav1.OwnerReference, o Owner, control bool) []metav1.OwnerReference {
	out := make([]metav1.OwnerReference, 0, len(refs)+1)
	placed := false
	for _, r := range refs {
		switch {
		case o.Is(r) && placed:
			continue
		case o.Is(r):
			out, placed = append(out, o.Reference(control)), true
			continue
		case control && isController(r):
			r.Controller, r.BlockOwnerDeletion = nil, nil
		}
		out = append(out, r)
	}
	if !placed {
		out = append(out, o.Reference(control))
	}
	return out
}

func isController(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller }

// controller returns the controller among references, or nil.
func controller(refs []metav1.OwnerReference) *metav1.OwnerReference {
	if i := slices.IndexFunc(refs, isController); i >= 0 {
		return &refs[i]
	}
	return nil
}

func equalOwners(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.OwnerReference) bool {
		return x.APIVersion == y.APIVersion && x.Kind == y.Kind && x.Name == y.Name && x.UID == y.UID &&
			isController(x) == isController(y)
	})
}

// owns reports whether the requester is an owner of an object.
func (who Requester) owns(l Live) bool {
	return slices.ContainsFunc(
		l.Owners, func(r metav1.OwnerReference) bool { return who.Package.Is(r) && r.UID == who.Package.UID },
	)
}

// Controls reports whether the requester is the controller of an object that exists, or the package has adopted the
// object.
func (who Requester) Controls(l Live) bool {
	c := controller(l.Owners)
	return c != nil && who.owner().Is(*c) || who.hasAdopted(l.Annotations)
}
