package rbac_test

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

func ExampleMissing() {
	have := []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{
		"get", "list",
	}}}
	want := []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{
		"get", "delete",
	}}}
	for _, rule := range rbac.Missing(have, want) {
		fmt.Println(rbac.Describe(rule))
	}
	// Output: delete deployments in apps
}
