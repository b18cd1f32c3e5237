package bootstrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
)

// Helm takes over the objects of `xpkg bootstrap`, and `xpkg bootstrap` those of Helm. Neither replaces an object, and
// Helm removes no CRD.
func TestHelmAndBootstrapTakeOverFromEachOther(t *testing.T) {
	lane.Full(
		t, "test/bootstrap.TestManagerRunsWithBootstrapManifests",
		"internal/bootstrap/chart.TestTheChartIsWhatBootstrapPrints",
	)
	if testing.Short() {
		t.Skip("builds the program and Helm: skipped with -short")
	}
	s := &suite{env.New(t)}
	binary := program.Build(t)
	s.bootstrap(t, binary)
	before := s.identities(t)

	s.helm(t, "upgrade", "--install", "xpkg", filepath.Join("..", "..", "charts", "xpkg"), "--take-ownership")
	s.compare(t, "Helm has taken over", before, s.identities(t))
	deployment := &appsv1.Deployment{}
	s.get(t, "xpkg", deployment)
	if got := deployment.Labels["app.kubernetes.io/managed-by"]; got != "Helm" {
		t.Errorf("the Deployment is managed by %q after Helm has taken over", got)
	}

	s.bootstrap(t, binary, "--replicas", "1")
	s.compare(t, "bootstrap has taken over", before, s.identities(t))
	s.get(t, "xpkg", deployment)
	if got := *deployment.Spec.Replicas; got != 1 {
		t.Errorf("%d replicas, want the one of bootstrap", got)
	}
	s.helm(t, "upgrade", "xpkg", filepath.Join("..", "..", "charts", "xpkg"), "--set", "replicas=2")
	s.compare(t, "Helm has upgraded its release", before, s.identities(t))
	s.get(t, "xpkg", deployment)
	if got := *deployment.Spec.Replicas; got != 2 {
		t.Errorf("%d replicas, want the two of Helm", got)
	}

	s.helm(t, "uninstall", "xpkg", "--wait")
	left := s.identities(t)
	for name, uid := range before {
		if strings.HasPrefix(name, "CustomResourceDefinition ") && left[name] != uid {
			t.Errorf("%s was removed with the release", name)
		}
	}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment is left: %v", err)
	}
	s.bootstrap(t, binary)
	again := s.identities(t)
	for name, uid := range left {
		if again[name] != uid {
			t.Errorf("%s was replaced", name)
		}
	}
}

// helm runs Helm, of the version that the tools are pinned to, as an administrator.
func (s *suite) helm(t *testing.T, args ...string) {
	t.Helper()
	tool := []string{
		"tool", "-modfile=" + filepath.Join("..", "..", "tools", "helm", "go.mod"), "helm", "--kubeconfig",
		cluster.Kubeconfig(t), "--namespace", namespace,
	}
	cmd := exec.CommandContext(t.Context(), "go", append(tool, args...)...)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("helm %v: %v\n%s", args, err, out)
	}
}

// identities returns the UIDs of the objects of the manager that exist, by kind and name.
func (s *suite) identities(t *testing.T) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	selector := client.MatchingLabels{"app.kubernetes.io/name": "xpkg"}
	for kind, list := range map[string]client.ObjectList{
		"Deployment": &appsv1.DeploymentList{}, "ServiceAccount": &corev1.ServiceAccountList{},
		"ClusterRole":        &rbacv1.ClusterRoleList{},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBindingList{}, "Role": &rbacv1.RoleList{},
		"RoleBinding":              &rbacv1.RoleBindingList{},
		"CustomResourceDefinition": &apiextensionsv1.CustomResourceDefinitionList{},
	} {
		var options []client.ListOption
		if kind != "CustomResourceDefinition" {
			options = append(options, selector)
		}
		if err := s.Client.List(t.Context(), list, options...); err != nil {
			t.Fatal(err)
		}
		items, err := apimeta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range items {
			object := o.(metav1.Object)
			found[kind+" "+object.GetName()] = object.GetUID()
		}
	}
	return found
}

// compare fails the test if objects were created, deleted or replaced.
func (s *suite) compare(t *testing.T, when string, want, got map[string]types.UID) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects after %s (-want +got):\n%s", when, diff)
	}
}
