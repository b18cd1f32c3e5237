package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// testEnv is a cluster with the manifests of the manager, except its Deployment, and
// with a simulated kubelet.
type testEnv struct {
	*env.Env
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
	s := &testEnv{Env: env.New(t), namespace: bootstrap.DefaultNamespace}
	t.Cleanup(func() { s.clear(t) })
	s.StartKubelet(t, s.namespace)
	return s
}

// clear deletes all packages: their content is in the registry of their test. No manager
// runs that would handle finalizers.
func (s *testEnv) clear(t *testing.T) {
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := s.Client.List(context.Background(), list); err != nil && !meta.IsNoMatchError(err) {
			t.Error(err)
		}
		for _, p := range list.Packages() {
			release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := s.Client.Patch(context.Background(), p, release); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
			if err := s.Client.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	}
}

// policy is the name of the ConfigMap with the policy for requested permissions.
const policy = "policy"

// options returns the options of the manager of these tests: it may grant the permissions
// that the packages of the tests need.
func options() bootstrap.Options {
	return bootstrap.Options{
		Version: "test", PackageGroups: []string{"bootstrap.example.org", "hello.xpkg.dev"}, PermissionPolicy: policy,
		RemoveOrphans: true,
	}
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
			s.EnsureCreated(t, o)
		}
	}
	for _, o := range bootstrap.RolesOf(options().Grants(), s.namespace) {
		// Grants that no longer exist are deleted.
		if err := s.Client.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion("")
	}
	for _, o := range bootstrap.RolesOf(grants, s.namespace) {
		s.EnsureCreated(t, o)
	}
	s.EnsureCreated(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: policy},
		Data:       map[string]string{rbac.PolicyKey: "deny: [{name: no-secrets, resources: [secrets]}]"},
	})
	wait.Until(t, env.Limit, "the package API is served", func() (string, bool) {
		err := errors.Join(
			s.Client.List(t.Context(), &v1.ProviderList{}), s.Client.List(t.Context(), &v1beta1.ImageConfigList{}),
		)
		return fmt.Sprint(err), err == nil
	})
}

// run runs a manager with its ServiceAccount until the test ends or it is stopped, and
// returns its requests. It does not wait until the manager is ready: without its
// permissions it never is.
func (s *testEnv) run(t *testing.T) (*calls, func()) {
	t.Helper()
	seen, cfg := newCalls(), s.ServiceAccount(t, s.namespace, bootstrap.Name)
	cfg.Wrap(seen.wrap)
	content := env.OpenContent(t, t.TempDir(), fetch.Options{})
	source := content.Source
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			err := controller.Run(ctx, controller.Options{
				Config: cfg, Content: source, Images: source, Namespace: s.namespace, InUse: content.Cache.Use,
				Log:            slog.New(slog.DiscardHandler),
				Permissions:    &controller.Permissions{Policy: permission.PolicySource{ConfigMap: policy}},
				Runtimes:       runtime.Everywhere(runtime.Deployment),
				Settle:         time.Second,
				LeaderElection: &leader.Election{Identity: t.Name()},
				Dependencies: &controller.Dependencies{
					Registry: source, Upgrades: graph.UpgradeOrDowngrade, Removal: graph.RemoveOrphans,
				},
			})
			if err != nil && ctx.Err() == nil {
				// The kubelet would restart the manager.
				pause(ctx)
			}
		}
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("denied requests: %+v", seen.denials())
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

// change changes the spec of a package, and waits until it is ready.
func (s *testEnv) change(t *testing.T, p v1.Package, do func(*v1.PackageSpec)) {
	t.Helper()
	env.Update(t, s.Env, p, func(p v1.Package) { do(p.PackageSpec()) })
	s.WaitReady(t, p)
}

// stream returns a package of a kind with objects.
func stream(kind, name string, objects ...string) string {
	requests := ""
	if kind == v1.ProviderKind {
		requests = "  controller:\n    permissionRequests:\n    - {apiGroups: [bootstrap.example.org], resources: [others], verbs: [delete]}\n"
	}
	return fmt.Sprintf(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  crossplane:\n    version: \">=1.0.0\"\n%s---\n%s",
		kind, name, requests, strings.Join(objects, "---\n"),
	)
}
