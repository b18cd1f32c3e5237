// Package bootstrap_test runs the manager as `xpkg bootstrap` deploys it: with the ServiceAccount of the
// manifests and the arguments of their Deployment.
package bootstrap_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const namespace = "crossplane-system"

// The manifests grant the manager all permissions that it needs to install a provider and a function,
// and no dangerous ones.
func TestManagerRunsWithBootstrapManifests(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program: skipped with -short")
	}
	s := &suite{env.New(t)}
	binary := program.Build(t)
	s.bootstrap(t, binary, "--package-group", "hello.xpkg.dev")
	deployment := &appsv1.Deployment{}
	s.get(t, "xpkg", deployment)
	m := program.Start(t, binary, s.identity(t, deployment), t.TempDir(), arguments(t, deployment)...)

	provider, function := s.installs(t, v1.ProviderKind, "provider-hello"),
		s.installs(t, v1.FunctionKind, "function-greet")
	s.untilHealthy(t, m, provider)
	s.untilHealthy(t, m, function)
	for _, secret := range []string{
		"crossplane-root-ca", "provider-hello-tls-server", "provider-hello-tls-client", "function-greet-tls-server",
	} {
		s.get(t, secret, &corev1.Secret{})
	}
	for _, p := range []v1.Package{provider, function} {
		s.get(t, p.PackageStatus().CurrentRevision, &appsv1.Deployment{})
		s.get(t, p.GetName(), &corev1.Service{})
	}
	s.mayDo(t, deployment.Spec.Template.Spec.ServiceAccountName)
	if strings.Contains(m.Log(), "forbidden") {
		t.Errorf("the manager was denied a request:\n%s", m.Log())
	}
	m.Stop(t)
}

// A second manager in another namespace would take the permissions of the first one.
func TestBootstrapRefusesASecondManager(t *testing.T) {
	lane.Full(
		t, "test/bootstrap.TestManagerRunsWithBootstrapManifests",
		"internal/bootstrap/chart.TestTheChartIsWhatBootstrapPrints",
	)
	if testing.Short() {
		t.Skip("builds the program: skipped with -short")
	}
	s := &suite{env.New(t)}
	binary := program.Build(t)
	s.bootstrap(t, binary)
	second := []string{"bootstrap", "--apply", "--kubeconfig", cluster.Kubeconfig(t), "--namespace", "second"}
	out, err := exec.CommandContext(t.Context(), binary, second...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "AnotherManager: ") ||
		!strings.Contains(string(out), "`kubectl delete deployment --namespace "+namespace+" xpkg`") {
		t.Errorf("%v\n%s", err, out)
	}
	s.subjectIs(t, namespace)
	deployment := &appsv1.Deployment{}
	s.get(t, "xpkg", deployment)
	if err := s.Client.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	s.bootstrap(t, binary, "--namespace", "second")
	s.subjectIs(t, "second")
	// Other tests install the manager in the first namespace.
	if err := s.Client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "second", Name: "xpkg",
	}}); err != nil {
		t.Fatal(err)
	}
}

// subjectIs fails the test unless the permissions of the manager are those of a ServiceAccount in a namespace.
func (s *suite) subjectIs(t *testing.T, want string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "xpkg"}, binding); err != nil {
		t.Fatal(err)
	}
	if len(binding.Subjects) != 1 || binding.Subjects[0].Namespace != want {
		t.Errorf("the permissions are those of %v, want the namespace %s", binding.Subjects, want)
	}
}

// suite is an environment without a package manager.
type suite struct{ *env.Env }

// bootstrap applies the manifests as an administrator. Their Deployment has no node to run on.
func (s *suite) bootstrap(t *testing.T, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(), program, append([]string{"bootstrap", "--apply", "--kubeconfig", cluster.Kubeconfig(t)}, args...)...,
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// identity writes a kubeconfig with the credentials of the ServiceAccount of a Pod, and no others.
func (s *suite) identity(t *testing.T, d *appsv1.Deployment) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: s.Token(t, namespace, d.Spec.Template.Spec.ServiceAccountName)}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// arguments returns the arguments of the manager in its Pod, without the directory and the addresses
// that exist only in a Pod. It enables runtimes, which program.Start disables by default.
func arguments(t *testing.T, d *appsv1.Deployment) []string {
	t.Helper()
	all := d.Spec.Template.Spec.Containers[0].Args
	if len(all) == 0 || all[0] != "manager" {
		t.Fatalf("the pod runs xpkg %v", all)
	}
	args := []string{"--package-runtime=Deployment"}
	for _, a := range all[1:] {
		if !slices.ContainsFunc(
			[]string{"--cache-dir=", "--metrics-address=", "--health-address="},
			func(flag string) bool { return strings.HasPrefix(a, flag) },
		) {
			args = append(args, strings.ReplaceAll(a, "$(POD_NAMESPACE)", namespace))
		}
	}
	return args
}

// installs installs an example.
func (s *suite) installs(t *testing.T, kind, name string) v1.Package {
	t.Helper()
	files, err := xpkg.ReadFolder(os.DirFS(filepath.Join("..", "..", "examples", name, "package")), xpkg.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := v1.NewPackage(kind)
	p.SetName(name)
	p.PackageSpec().Package = s.Push(t, "examples/"+name, "v0.1.0", string(files.Stream()))
	// The manager can be ready before the package API is served.
	wait.Until(t, env.Limit, name+" is created", func() (string, bool) {
		err := s.Client.Create(t.Context(), p)
		return fmt.Sprint(err), err == nil || apierrors.IsAlreadyExists(err)
	})
	return p
}

// untilHealthy waits for a package, and acts as the kubelet meanwhile.
func (s *suite) untilHealthy(t *testing.T, m *program.Manager, p v1.Package) {
	t.Helper()
	wait.Until(t, env.Limit, p.GetName()+" is healthy", func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		s.runPods(t.Context())
		ready := p.GetCondition(v1.TypeReady)
		return fmt.Sprintf("%+v\n%s", p.PackageStatus(), m.Log()),
			ready.Status == corev1.ConditionTrue && ready.ObservedGeneration == p.GetGeneration()
	})
}

// runPods sets the status of all Pods to running. A Pod that was changed meanwhile is updated in the
// next round.
func (s *suite) runPods(ctx context.Context) {
	var pods corev1.PodList
	if s.Client.List(ctx, &pods, client.InNamespace(namespace)) != nil {
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute)),
		}}
		_ = s.Client.Status().Update(ctx, pod)
	}
}

func (s *suite) get(t *testing.T, name string, o client.Object) {
	t.Helper()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		t.Errorf("%T %s: %v", o, name, err)
	}
}

// mayDo compares samples of the manager's permissions with the API server.
func (s *suite) mayDo(t *testing.T, account string) {
	t.Helper()
	for _, c := range []struct {
		verb, group, resource, namespace string
		allowed                          bool
	}{
		{"create", "", "secrets", namespace, true},
		{"create", "apiextensions.k8s.io", "customresourcedefinitions", "", true},
		{"delete", "", "namespaces", "", false},
		{"update", "", "nodes", "", false},
		{"create", "", "pods", namespace, false},
		{"create", "apps", "deployments", "kube-system", false},
		{"escalate", rbacv1.GroupName, "clusterroles", "", false},
		{"bind", rbacv1.GroupName, "clusterroles", "", false},
		{"impersonate", "", "users", "", false},
		{"*", "*", "*", "", false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + namespace + ":" + account,
			Groups: []string{"system:serviceaccounts", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: c.verb, Group: c.group, Resource: c.resource, Namespace: c.namespace,
			},
		}}
		if err := s.Client.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != c.allowed {
			t.Errorf("%s %s %s in %q: allowed is %t", c.verb, c.group, c.resource, c.namespace, review.Status.Allowed)
		}
	}
}
