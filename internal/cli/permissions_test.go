package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// reader returns a kubeconfig of a user with permission to read packages only. It waits until the API server grants the
// permission.
func (b bench) reader(t *testing.T) string {
	t.Helper()
	clients := kubernetes.NewForConfigOrDie(b.config)
	roles := clients.RbacV1()
	user := "reader-" + strings.ToLower(t.Name())
	name := metav1.ObjectMeta{Name: user}
	_, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1.Group}, Resources: []string{"providers", "configurations", "functions"},
		Verbs: []string{"get", "list"},
	}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := errors.Join(
			roles.ClusterRoleBindings().Delete(ctx, user, metav1.DeleteOptions{}),
			roles.ClusterRoles().Delete(ctx, user, metav1.DeleteOptions{}),
		)
		if err != nil {
			t.Error(err)
		}
	})
	wait.Until(t, time.Minute, "the user may list packages", func() (string, bool) {
		review, err := clients.AuthorizationV1().SubjectAccessReviews().
			Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Group: v1.Group, Resource: "functions", Verb: "list"},
			}}, metav1.CreateOptions{})
		return fmt.Sprint(err), err == nil && review.Status.Allowed
	})
	config, err := clientcmd.LoadFromFile(b.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	file := filepath.Join(b.dir, user)
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// A user with permission to read packages only can list them.
func TestListWithFewPermissions(t *testing.T) {
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "listed", "v1", "Ferry"), "listed", "--wait", "1m")
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if code := cli.Main(t.Context(), []string{"xpkg", "list", "--kubeconfig", b.reader(t)}, env); code != 0 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	checkMatches(t, out.String(), `^provider/listed +True +True `)
	b.must(t, 0, "uninstall", "provider", "listed", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}
