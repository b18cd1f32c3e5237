package rbac

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// nameDigits is the number of hexadecimal digits of the content hash in the name of a
// role.
const nameDigits = 12

// Lack lists the permissions that a subject is missing.
type Lack struct {
	// Everywhere are rules for the whole cluster.
	Everywhere []rbacv1.PolicyRule
	// Within are rules for the namespace.
	Within    []rbacv1.PolicyRule
	Namespace string
}

// Rules returns all rules, cluster-wide and namespaced.
func (l Lack) Rules() []rbacv1.PolicyRule {
	return append(l.Everywhere[:len(l.Everywhere):len(l.Everywhere)], l.Within...)
}

// YAML returns a manifest of roles with the rules and, if there are subjects, of their
// bindings. The names are derived from the rules, so that applying one manifest does not
// revert another. It returns nil if nothing is missing.
func (l Lack) YAML(subjects ...rbacv1.Subject) ([]byte, error) {
	var objects []any
	if len(l.Everywhere) > 0 {
		rules := canonical(l.Everywhere)
		role := rbacv1.ClusterRole{
			TypeMeta:   typeMeta("ClusterRole"),
			ObjectMeta: metav1.ObjectMeta{Name: grantedName(rules)},
			Rules:      rules,
		}
		objects = append(objects, role)
		if len(subjects) > 0 {
			objects = append(objects, rbacv1.ClusterRoleBinding{
				TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: bindingName(role.Name, subjects)},
				RoleRef: roleRef(role.Kind, role.Name), Subjects: subjects,
			})
		}
	}
	if len(l.Within) > 0 {
		rules := canonical(l.Within)
		role := rbacv1.Role{
			TypeMeta:   typeMeta("Role"),
			ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: grantedName(rules)},
			Rules:      rules,
		}
		objects = append(objects, role)
		if len(subjects) > 0 {
			objects = append(objects, rbacv1.RoleBinding{
				TypeMeta:   typeMeta("RoleBinding"),
				ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: bindingName(role.Name, subjects)},
				RoleRef:    roleRef(role.Kind, role.Name), Subjects: subjects,
			})
		}
	}
	if len(objects) == 0 {
		return nil, nil
	}
	documents := make([][]byte, len(objects))
	for i, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		documents[i] = text
	}
	return bytes.Join(documents, []byte("---\n")), nil
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func grantedName(rules []rbacv1.PolicyRule) string {
	return "xpkg:granted:" + digest(rules)[:nameDigits]
}

// bindingName returns a name that depends on the subjects, so that two identities that
// lack the same permissions get separate bindings.
func bindingName(role string, subjects []rbacv1.Subject) string {
	h := sha256.New()
	for _, s := range subjects {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x01", s.APIGroup, s.Kind, s.Namespace, s.Name)
	}
	return role + ":" + hex.EncodeToString(h.Sum(nil))[:nameDigits]
}

// Fingerprint returns a hash of the permissions of rules, regardless of how they are
// written. An approval contains the fingerprint that it approves.
func Fingerprint(rules []rbacv1.PolicyRule) string { return "sha256:" + digest(canonical(rules)) }

func digest(canonical []rbacv1.PolicyRule) string {
	var key string
	for _, r := range canonical {
		key += ruleKey(r) + "\x02"
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
