package env

import (
	"context"
	"fmt"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// User returns a user as the subject of permissions.
func User(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// AsUser returns the configuration of a user with the permissions of its bindings alone.
func AsUser(config *rest.Config, name string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	return config
}

// Grant gives a subject permissions until the test ends, and waits until the API server answers requests with them: it
// reads roles and bindings some time after they are written.
func Grant(t testing.TB, c client.Client, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	name := "test-" + rand.String(8)
	// The API server knows the role and the binding when the subject has the permission that only this role grants.
	rules = append(slices.Clone(rules), rbacv1.PolicyRule{
		APIGroups: []string{"granted.example.org"}, Resources: []string{name}, Verbs: []string{"get"},
	})
	create(t, c, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	create(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	})
	user := subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		user = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	}
	wait.Until(t, Limit, "the API server knows the permissions of "+user, func() (string, bool) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: "granted.example.org", Resource: name, Verb: "get",
			},
		}}
		err := c.Create(t.Context(), review)
		return fmt.Sprint(err), err == nil && review.Status.Allowed
	})
}

func create(t testing.TB, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context()), o); err != nil {
			t.Error(err)
		}
	})
}
