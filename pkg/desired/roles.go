package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// Roles returns the roles and bindings of a revision as desired objects of a plan.
func Roles(set rbac.Set) (*Objects, error) {
	out := newObjects()
	for i := range set.ClusterRoles {
		if err := out.role(&set.ClusterRoles[i], "ClusterRole"); err != nil {
			return nil, err
		}
	}
	for i := range set.Roles {
		if err := out.role(&set.Roles[i], "Role"); err != nil {
			return nil, err
		}
	}
	for i := range set.ClusterRoleBindings {
		if err := out.role(&set.ClusterRoleBindings[i], "ClusterRoleBinding"); err != nil {
			return nil, err
		}
	}
	for i := range set.RoleBindings {
		if err := out.role(&set.RoleBindings[i], "RoleBinding"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (o *Objects) role(role metav1.Object, kind string) error {
	raw, err := json.Marshal(role)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	o.put(plan.Desired{
		Ref:    RoleRef(kind, role.GetNamespace(), role.GetName()),
		Labels: role.GetLabels(), Annotations: role.GetAnnotations(), Digest: "sha256:" + hex.EncodeToString(sum[:]),
	}, func() ([]byte, error) { return raw, nil })
	return nil
}

// RoleRef returns the reference of a role or binding. The namespace is empty for a cluster role or its
// binding.
func RoleRef(kind, namespace, name string) plan.Ref {
	return plan.Ref{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind, Namespace: namespace, Name: name}
}

// RoleRefs returns every role and binding that a revision whose runtime runs in a namespace can have. A Configuration
// has no runtime.
func RoleRefs(kind, revision, namespace string) []plan.Ref {
	if kind == rbac.Configuration {
		return nil
	}
	roles, bindings := rbac.Names(kind, revision)
	var refs []plan.Ref
	for _, name := range roles {
		refs = append(refs, RoleRef("ClusterRole", "", name), RoleRef("Role", namespace, name))
	}
	for _, name := range bindings {
		refs = append(refs, RoleRef("ClusterRoleBinding", "", name), RoleRef("RoleBinding", namespace, name))
	}
	return refs
}
