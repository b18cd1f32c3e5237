package rbac

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A user approves what the text of a rule says: it is complete, and no word of a package can pass for the text around
// it.
func TestDescribeIsCompleteAndQuotes(t *testing.T) {
	var verbs []string
	for i := range 40 {
		verbs = append(verbs, fmt.Sprintf("aa%d", i))
	}
	long := Describe(rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"services"}, Verbs: append(verbs, "delete"),
	})
	if !strings.HasSuffix(long, ", delete services in the core group") || strings.Contains(long, "more") {
		t.Errorf("got %s", long)
	}
	for _, tc := range []struct {
		rule rbacv1.PolicyRule
		want string
	}{
		{
			rbacv1.PolicyRule{
				APIGroups: []string{"apps in the core group, to do nothing"}, Resources: []string{"q"}, Verbs: []string{"get"},
			},
			`get q in "apps in the core group, to do nothing"`,
		},
		{
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods\n0 to create"}, Verbs: []string{"get", ""}},
			`get, "" "pods\n0 to create" in the core group`,
		},
		{
			rbacv1.PolicyRule{
				APIGroups: []string{"*", "apps"}, Resources: []string{"*/scale", "deployments"}, Verbs: []string{"*"},
				ResourceNames: []string{"a.b-c_d:e"},
			},
			"* */scale, deployments in *, apps named a.b-c_d:e",
		},
		{rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics/*"}, Verbs: []string{"get"}}, "get of the URLs /metrics/*"},
	} {
		if got := Describe(tc.rule); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}
