package rbac

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// CompositeOfRole returns the name of the XRD that a ClusterRole of [DeriveComposite] belongs to, or "" for the name of
// another role.
func CompositeOfRole(role string) string {
	xrd, isComposite := strings.CutPrefix(role, "crossplane:composite:")
	xrd, _, isRole := strings.Cut(xrd, ":aggregate-to-")
	if !isComposite || !isRole {
		return ""
	}
	return xrd
}

// Fulfills reports whether a ClusterRole has the labels of another one and grants its permissions.
func Fulfills(live, want rbacv1.ClusterRole) bool {
	for key, value := range want.Labels {
		if live.Labels[key] != value {
			return false
		}
	}
	return Missing(live.Rules, want.Rules) == nil
}
