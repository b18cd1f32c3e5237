// Package permissions_test shows on a real API server what programs of packages may
// do, and what they may not.
package permissions_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"

	authenticationv1 "k8s.io/api/authentication/v1"

	authorizationv1 "k8s.io/api/authorization/v1"

	corev1 "k8s.io/api/core/v1"

	rbacv1 "k8s.io/api/rbac/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/apis"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// patience is for a machine that is busy.
const patience = 2 * time.Minute

const (
	home      = controller.DefaultNamespace
	elsewhere = "elsewhere"
)

// stand is a cluster without a package manager.
type stand struct {
	client   client.Client
	config   *rest.Config
	registry string
}

func newStand(t *testing.T) *stand {
	t.Helper()
	log.SetLogger(logr.Discard())
	cfg := cluster.Start(t)
	scheme, err := apis.NewScheme()
	if err == nil {
		err = errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme),
			authenticationv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{client: c, config: cfg, registry: cluster.Registry(t)}
	for _, name := range []string{home, elsewhere} {
		s.put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return s
}

// run runs a manager with an identity until the test ends. It does not wait until
// that works: without its rights it never does.
func (s *stand) run(t *testing.T, cfg *rest.Config, permissions controller.Permissions) {
	t.Helper()
	packages, err := cache.Open(filepath.Join(t.TempDir(), "cache"), cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source := fetch.NewSource(fetch.Options{Store: packages.Store(), Names: packages, Remote: remote.Options{}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, controller.Options{
			Config: cfg, Content: source, Log: slog.New(slog.DiscardHandler), InUse: packages.Use, Permissions: &permissions,
			// The tests play those who run the programs.
			Runtimes: runtime.Everywhere(runtime.External),
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("manager: %v", err)
		}
		source.Close()
		if err := packages.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (s *stand) put(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

// apply creates the objects of a text, as kubectl would.
func (s *stand) apply(t *testing.T, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		s.put(t, o)
	}
}

// publish pushes a package, and gives its reference.
func (s *stand) publish(t *testing.T, repository, tag, stream string) string {
	t.Helper()
	return publish.Stream(t, s.registry, repository, tag, []byte(stream)).String()
}

// install creates a provider with a package that is published for it. It goes with
// the test.
func (s *stand) install(t *testing.T, name, stream string) *v1.Provider {
	t.Helper()
	return s.installFrom(t, "permissions/"+name, name, stream)
}

// installFrom is like install, with the repository of the package.
func (s *stand) installFrom(t *testing.T, repository, name, stream string) *v1.Provider {
	t.Helper()
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Package = s.publish(t, repository, "v1", stream)
	wait.Until(t, patience, p.Name+" can be created", func() (string, bool) {
		err := s.client.Create(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
	t.Cleanup(func() {
		if err := s.client.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return p
}

// upgrade asks for another version.
func (s *stand) upgrade(t *testing.T, p *v1.Provider, tag, stream string) {
	t.Helper()
	ref := s.publish(t, "permissions/"+p.Name, tag, stream)
	wait.Until(t, patience, p.Name+" is changed", func() (string, bool) {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		p.Spec.Package = ref
		err := s.client.Update(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
}

// healthy waits until a package is ready with what it asks for, and gives its revision.
func (s *stand) healthy(t *testing.T, p *v1.Provider) string {
	t.Helper()
	s.until(t, p, func(ready v1.Condition) bool {
		s.report(t, p.Status.CurrentRevision)
		return ready.Status == corev1.ConditionTrue
	})
	return p.Status.CurrentRevision
}

// report says that the program of a revision runs.
func (s *stand) report(t *testing.T, name string) {
	t.Helper()
	var rev v1.ProviderRevision
	err := s.client.Get(t.Context(), client.ObjectKey{Name: name}, &rev)
	if err == nil && rev.GetCondition(v1.TypeRuntimeHealthy).Status != corev1.ConditionTrue && rev.Spec.DesiredState == v1.RevisionActive {
		rev.SetConditions(metav1.Now(), v1.RuntimeHealthy())
		err = s.client.Status().Update(t.Context(), &rev)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
}

// waits waits until a package says a reason for not being ready, and gives what its
// revision says.
func (s *stand) waits(t *testing.T, p *v1.Provider, reason string) string {
	t.Helper()
	s.until(t, p, func(ready v1.Condition) bool {
		return ready.Status == corev1.ConditionFalse && string(ready.Reason) == reason
	})
	return p.GetCondition(v1.TypeReady).Message
}

func (s *stand) until(t *testing.T, p *v1.Provider, is func(v1.Condition) bool) {
	t.Helper()
	wait.Until(t, patience, p.Name+" is as wanted", func() (string, bool) {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		ready := p.GetCondition(v1.TypeReady)
		return string(ready.Reason) + " " + ready.Message, p.Status.ObservedGeneration == p.Generation && is(ready)
	})
}

// may asks the API server whether a ServiceAccount of the home namespace may do
// something: "verb group/resource/subresource@namespace".
func (s *stand) may(t *testing.T, account, question string) bool {
	t.Helper()
	verb, what, _ := strings.Cut(question, " ")
	what, namespace, _ := strings.Cut(what, "@")
	parts := append(strings.Split(what, "/"), "")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + home + ":" + account,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + home, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: parts[0], Resource: parts[1], Subresource: parts[2],
		},
	}}
	if err := s.client.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// allowed and denied wait until the API server has heard of what it decides by.
func (s *stand) allowed(t *testing.T, account string, questions ...string) {
	t.Helper()
	for _, q := range questions {
		wait.Until(t, patience, account+" may "+q, func() (string, bool) { return "no", s.may(t, account, q) })
	}
}

func (s *stand) denied(t *testing.T, account string, questions ...string) {
	t.Helper()
	for _, q := range questions {
		wait.Until(t, patience, account+" may not "+q, func() (string, bool) { return "yes", !s.may(t, account, q) })
	}
}

// absent checks that an object does not exist.
func (s *stand) absent(t *testing.T, o client.Object, name string) {
	t.Helper()
	if err := s.client.Get(t.Context(), client.ObjectKey{Name: name}, o); !apierrors.IsNotFound(err) {
		t.Errorf("%T %s: %v, want none", o, name, err)
	}
}

// identity is a client configuration of a ServiceAccount of the home namespace.
func (s *stand) identity(t *testing.T, name string) *rest.Config {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}}
	s.put(t, account)
	request := &authenticationv1.TokenRequest{}
	if err := s.client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(s.config)
	cfg.BearerToken, cfg.QPS = request.Status.Token, -1
	return cfg
}

// provider is a package.yaml: metadata with annotations and requests, and definitions.
func provider(name, metadata, spec string, definitions ...string) string {
	return fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: %s\n%sspec:\n  crossplane: {version: \">=1.0.0\"}\n%s", name, metadata, spec) +
		strings.Join(definitions, "")
}

// requests are permissionRequests of metadata, one rule in each line of JSON.
func requests(rules ...string) string {
	return "  controller:\n    permissionRequests:\n    - " + strings.Join(rules, "\n    - ") + "\n"
}

// crd is a definition of a resource: "plural.group", and its scope.
func crd(name, scope string) string {
	plural, group, _ := strings.Cut(name, ".")
	kind := strings.ToUpper(plural[:1]) + plural[1:]
	return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  names: {kind: %s, plural: %s}
  scope: %s
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, name, group, kind, plural, scope)
}
