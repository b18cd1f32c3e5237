package rights

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// nameDigits is how many hexadecimal digits of a role's content are in its name.
const nameDigits = 12

// YAML gives a ClusterRole with the rules that somebody can apply, and with subjects
// a binding of it to them. Its name follows from the rules, so that applying one
// takes nothing back that another one gave. Nil without rules.
func YAML(missing []rbacv1.PolicyRule, subjects ...rbacv1.Subject) ([]byte, error) {
	if len(missing) == 0 {
		return nil, nil
	}
	rules := canonical(missing)
	sum := sha256.Sum256([]byte(rulesKey(rules)))
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "xpkg:granted:" + hex.EncodeToString(sum[:])[:nameDigits]},
		Rules:      rules,
	}
	objects := []any{role}
	if len(subjects) > 0 {
		objects = append(objects, rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   subjects,
		})
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

func rulesKey(rules []rbacv1.PolicyRule) string {
	var key string
	for _, r := range rules {
		key += ruleKey(r) + "\x02"
	}
	return key
}
