package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"

	authenticationv1 "k8s.io/api/authentication/v1"

	corev1 "k8s.io/api/core/v1"

	rbacv1 "k8s.io/api/rbac/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xpkg-dev/xpkg/apis"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// patience is for a machine that is busy.
const patience = 2 * time.Minute

// testEnv is a cluster into which the manifests were put, but for the manager itself:
// there is no node that could run it.
type testEnv struct {
	client    client.Client
	config    *rest.Config
	registry  string
	namespace string
}

// TestMain makes clients list the resources that they watch, as with API servers without
// streaming lists.
func TestMain(m *testing.M) {
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func newEnv(t *testing.T) *testEnv {
	t.Helper()
	log.SetLogger(logr.Discard())
	cfg := cluster.Start(t)
	scheme, err := apis.NewScheme()
	if err == nil {
		err = errors.Join(corev1.AddToScheme(scheme), admissionv1.AddToScheme(scheme), appsv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &testEnv{client: c, config: cfg, registry: cluster.Registry(t), namespace: bootstrap.DefaultNamespace}
	t.Cleanup(func() { s.clear(t) })
	return s
}

// clear deletes all packages: their content is in the registry of their test. No manager
// runs that would handle finalizers.
func (s *testEnv) clear(t *testing.T) {
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := s.client.List(context.Background(), list); err != nil && !meta.IsNoMatchError(err) {
			t.Error(err)
		}
		for _, p := range list.Packages() {
			release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := s.client.Patch(context.Background(), p, release); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
			if err := s.client.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	}
}

// policy is the name of the ConfigMap with the policy for requested permissions.
const policy = "policy"

// options are the options of the manager of these tests: it may grant the permissions
// that the packages of the tests need.
func options() bootstrap.Options {
	return bootstrap.Options{Version: "test", PackageGroups: []string{"bootstrap.example.org", "hello.xpkg.dev"}, PermissionPolicy: policy, RemoveOrphans: true}
}

// install creates the objects that the manager needs, with the given grants.
func (s *testEnv) install(t *testing.T, grants []bootstrap.Grant) {
	t.Helper()
	all, err := bootstrap.Manifests(options())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		switch o.(type) {
		case *corev1.Namespace, *corev1.ServiceAccount, *apiextensionsv1.CustomResourceDefinition:
			s.create(t, o)
		}
	}
	for _, o := range bootstrap.RolesOf(options().Grants(), s.namespace) {
		// Grants that no longer exist are deleted.
		if err := s.client.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion("")
	}
	for _, o := range bootstrap.RolesOf(grants, s.namespace) {
		s.create(t, o)
	}
	s.create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: policy},
		Data:       map[string]string{rbac.PolicyKey: "deny: [{name: no-secrets, resources: [secrets]}]"},
	})
	wait.Until(t, patience, "the package API is served", func() (string, bool) {
		err := errors.Join(s.client.List(t.Context(), &v1.ProviderList{}), s.client.List(t.Context(), &v1beta1.ImageConfigList{}))
		return fmt.Sprint(err), err == nil
	})
}

func (s *testEnv) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := s.client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// identity is a client configuration of the manager's ServiceAccount.
func (s *testEnv) identity(t *testing.T) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: bootstrap.Name}}
	if err := s.client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(s.config)
	cfg.BearerToken, cfg.QPS = request.Status.Token, -1
	return cfg
}

// run runs a manager with its ServiceAccount until the test ends or it is stopped, and
// returns its requests. It does not wait until the manager is ready: without its
// permissions it never is.
func (s *testEnv) run(t *testing.T) (*calls, func()) {
	t.Helper()
	seen, cfg := newCalls(), s.identity(t)
	cfg.Wrap(seen.wrap)
	packages, err := cache.Open(filepath.Join(t.TempDir(), "cache"), cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source := fetch.NewSource(fetch.Options{Store: packages.Store(), Names: packages, Remote: remote.Options{}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			err := controller.Run(ctx, controller.Options{
				Config: cfg, Content: source, Images: source, Namespace: s.namespace, InUse: packages.Use, Log: slog.New(slog.DiscardHandler),
				Permissions:    &controller.Permissions{Policy: permission.PolicySource{ConfigMap: policy}},
				Runtimes:       runtime.Everywhere(runtime.Deployment),
				Settle:         time.Second,
				LeaderElection: &leader.Election{Identity: t.Name()},
				Dependencies:   &controller.Dependencies{Registry: source, Upgrades: graph.UpgradeOrDowngrade, Removal: graph.RemoveOrphans},
			})
			if err != nil && ctx.Err() == nil {
				// Like a pod it is started again.
				pause(ctx)
			}
		}
	}()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		<-ended
		source.Close()
		if err := packages.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the manager was refused: %+v", seen.denials())
		}
	})
	return seen, stop
}

func pause(ctx context.Context) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// publish pushes a package, and returns its reference.
func (s *testEnv) publish(t *testing.T, name, tag, stream string) string {
	t.Helper()
	return publish.Stream(t, s.registry, "bootstrap/"+name, tag, []byte(stream)).String()
}

// healthy waits until a package is healthy with a revision that fits.
func (s *testEnv) healthy(t *testing.T, p v1.Package) {
	t.Helper()
	wait.Until(t, patience, p.GetName()+" is healthy", func() (string, bool) {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		s.simulateKubelet(t)
		ready := p.GetCondition(v1.TypeReady)
		return fmt.Sprintf("%+v", p.PackageStatus()), ready.Status == corev1.ConditionTrue && p.PackageStatus().ObservedGeneration == p.GetGeneration()
	})
}

// simulateKubelet makes Deployments available, as there is no node.
func (s *testEnv) simulateKubelet(t *testing.T) {
	t.Helper()
	var pods corev1.PodList
	if err := s.client.List(t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			continue
		}
		pods.Items[i].Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}}
		if err := s.client.Status().Update(t.Context(), &pods.Items[i]); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// change changes the spec of a package.
func (s *testEnv) change(t *testing.T, p v1.Package, do func(*v1.PackageSpec)) {
	t.Helper()
	wait.Until(t, patience, p.GetName()+" is changed", func() (string, bool) {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		do(p.PackageSpec())
		err := s.client.Update(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
	s.healthy(t, p)
}

// stream is a package of a kind with objects.
func stream(kind, name string, objects ...string) string {
	requests := ""
	if kind == v1.ProviderKind {
		requests = "  controller:\n    permissionRequests:\n    - {apiGroups: [bootstrap.example.org], resources: [others], verbs: [delete]}\n"
	}
	return fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  crossplane:\n    version: \">=1.0.0\"\n%s---\n%s", kind, name, requests, strings.Join(objects, "---\n"))
}
