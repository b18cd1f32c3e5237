// Package env provides tests with the environment of a package manager: the API server of the
// test binary, an OCI registry, packages, and managers that run in the process of the test.
package env

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// Limit is the time limit for reaching a state on a busy machine.
const Limit = 3 * time.Minute

// Env is an API server without a package manager, and an empty registry. All environments of a
// test binary share one API server, so each test uses its own object names.
type Env struct {
	// Config is the configuration of an administrator.
	Config *rest.Config
	// Client is a client with that configuration.
	Client client.WithWatch
	// Registry is the address of the registry, as host:port.
	Registry string
}

// New returns an environment for one test.
func New(t testing.TB) *Env {
	t.Helper()
	cfg := cluster.Start(t)
	return &Env{Config: cfg, Client: NewClient(t, cfg), Registry: cluster.Registry(t)}
}

// NewClient returns a client for packages, and for the kinds of Kubernetes that a package manager
// reads and writes.
func NewClient(t testing.TB, cfg *rest.Config) client.WithWatch {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err == nil {
		err = errors.Join(
			admissionregistrationv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), appsv1.AddToScheme(scheme),
			authenticationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme), corev1.AddToScheme(scheme),
			eventsv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// As returns the configuration of an administrator with another user name.
func (e *Env) As(user string) *rest.Config {
	cfg := rest.CopyConfig(e.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters", "system:authenticated"}}
	return cfg
}

// ServiceAccount returns the configuration of a client with the token of a ServiceAccount.
func (e *Env) ServiceAccount(t testing.TB, namespace, name string) *rest.Config {
	t.Helper()
	cfg := rest.AnonymousClientConfig(e.Config)
	cfg.BearerToken, cfg.QPS = e.Token(t, namespace, name), -1
	return cfg
}

// Token returns a token of a ServiceAccount.
func (e *Env) Token(t testing.TB, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{}
	if err := e.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// WriteKubeconfig writes a kubeconfig with the address of an API server, or of a proxy before one, and returns its
// path.
func WriteKubeconfig(t testing.TB, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x"}}],"clusters":[{"name":"x","cluster":{"server":%q}}]}`,
		server,
	)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
