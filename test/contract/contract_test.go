package contract

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/session"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestEndToEnd runs the sessions in testdata. Each has the name of the test of Crossplane whose promises it contains,
// installs packages of its own, and deletes them. They find
//
//	$REGISTRY    a registry, as host:port
//	$PRIVATE     the same registry for the user "puller" with the password "secret"
//	$NAMESPACE   the namespace of the manager
//
// kubectl for the control plane, and the commands
//
//	push FILE REFERENCE   builds a package from a package.yaml in which it replaces variables, and pushes
//	                      it; $DIGEST is its digest then
//	expand FILE…          replaces the variables in files
//
// The manager runs runtimes as Deployments, whose pods a simulated kubelet makes ready.
func TestEndToEnd(t *testing.T) {
	e := env.New(t)
	kubectl := filepath.Join(filepath.Dir(cluster.Program(t)), "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		prerequisite.Missing(t, "bin/kubectl is not built: make build-kubectl")
	}
	e.StartKubelet(t, controller.DefaultNamespace)
	content := env.OpenContent(t, t.TempDir(), fetch.Options{})
	o := content.Options()
	o.Runtimes = runtime.Everywhere(runtime.Deployment)
	o.RuntimePrivileges = []manifests.Privilege{manifests.ServiceAccount}
	o.Settle = time.Second
	o.Dependencies = &controller.Dependencies{Registry: content.Source, Upgrades: graph.UpgradeOrDowngrade}
	e.RunManager(t, o)
	private := privateRegistry(t, e.Registry)

	testscript.RunT(session.InTurn(t), testscript.Params{
		Files: session.Scripts(t,
			"testdata", "TestConfigurationWithDependency", "TestDeploymentRuntimeConfig", "TestImageConfigRewrite",
			"TestNoValidVersion", "TestPackageRevisionLifeCycle", "TestProviderUpgrade", "TestUpgradeDependencyVersion"),
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"push": push, "expand": session.Expand},
		Setup: func(s *testscript.Env) error {
			s.Setenv("PATH", filepath.Dir(kubectl)+string(filepath.ListSeparator)+s.Getenv("PATH"))
			s.Setenv("KUBECONFIG", cluster.Kubeconfig(t))
			s.Setenv("REGISTRY", e.Registry)
			s.Setenv("PRIVATE", private)
			s.Setenv("NAMESPACE", controller.DefaultNamespace)
			return nil
		},
	})
}

// push FILE REFERENCE builds and pushes a package.
func push(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: push FILE REFERENCE")
	}
	stream := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	digest, err := publish.Package(context.Background(), args[1], []byte(stream))
	ts.Check(err)
	ts.Setenv("DIGEST", digest.String())
}

// privateRegistry returns the address of a registry that requires the password of a user, and otherwise answers
// like another one.
func privateRegistry(t *testing.T, backend string) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: backend})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "puller" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="packages"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
