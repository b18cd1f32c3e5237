package cli_test

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// The plan of the way back reads everything that it needs with the client of the command, and a dry run changes
// nothing.
func TestMigrateToCoreShowsItsPlan(t *testing.T) {
	e := env.New(t)
	e.InstallPackageAPI(t)
	const namespace = "migrate-to-core"
	labels := map[string]string{"app": "manager"}
	manager := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bootstrap.Name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "manager", Image: "registry.example.org/xpkg:v1",
				}}},
			},
		},
	}
	e.EnsureCreated(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	e.Create(t, manager)
	t.Cleanup(func() { e.CleanUp(t, manager) })
	var out, errs bytes.Buffer
	args := []string{
		"xpkg", "migrate", "to-core", "--namespace", namespace, "--dry-run", "--kubeconfig", cluster.Kubeconfig(t),
	}
	code := cli.Main(t.Context(), args, &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	if code != 2 {
		t.Fatalf("exit code %d, want 2: %s", code, errs.String())
	}
	for _, part := range []string{
		"2. Stop the manager\n", "4. Let Crossplane core manage packages\n", "6. Remove the manager\n",
		"CustomResourceDefinition transactions.xpkg.dev is deleted",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the plan lacks %q:\n%s", part, out.String())
		}
	}
	live := &appsv1.Deployment{}
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(manager), live); err != nil ||
		live.Generation != manager.Generation {
		t.Errorf("the dry run changed the Deployment of the manager: %v", err)
	}
}
