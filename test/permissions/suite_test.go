// Package permissions_test checks the permissions of package runtimes on a real API server.
package permissions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	home      = controller.DefaultNamespace
	elsewhere = "elsewhere"
)

// suite is an environment with two namespaces.
type suite struct {
	*env.Env
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	log.SetLogger(logr.Discard())
	s := &suite{env.New(t)}
	for _, name := range []string{home, elsewhere} {
		s.EnsureCreated(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return s
}

// run starts a manager with an identity. It does not wait until the manager is ready: without its
// permissions it never is. The tests report the health of the runtimes.
func (s *suite) run(t *testing.T, cfg *rest.Config, permissions controller.Permissions) *env.Manager {
	t.Helper()
	return s.runWith(t, cfg, permissions, runtime.Everywhere(runtime.External))
}

// runWith is like run, with a choice of runtimes.
func (s *suite) runWith(
	t *testing.T, cfg *rest.Config, permissions controller.Permissions, runtimes runtime.Choice,
) *env.Manager {
	t.Helper()
	o := env.OpenContent(t, t.TempDir(), fetch.Options{}).Options()
	o.Images, o.Config, o.Permissions, o.Runtimes = nil, cfg, &permissions, runtimes
	return s.RunManager(t, o)
}

// apply creates the objects of a YAML text.
func (s *suite) apply(t *testing.T, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		s.EnsureCreated(t, o)
	}
}

// install publishes a package and creates a provider, which is deleted when the test ends.
func (s *suite) install(t *testing.T, name, stream string) *v1.Provider {
	t.Helper()
	return s.installFrom(t, "permissions/"+name, name, stream)
}

// installFrom is like install, with a given repository.
func (s *suite) installFrom(t *testing.T, repository, name, stream string) *v1.Provider {
	t.Helper()
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Package = s.Push(t, repository, "v1", stream)
	wait.Until(t, env.Limit, p.Name+" can be created", func() (string, bool) {
		err := s.Client.Create(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
	t.Cleanup(func() { s.CleanUp(t, p) })
	return p
}

// upgrade requests another version.
func (s *suite) upgrade(t *testing.T, p *v1.Provider, tag, stream string) {
	t.Helper()
	ref := s.Push(t, "permissions/"+p.Name, tag, stream)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = ref })
}

// healthy waits until a package is ready with its requested version, and returns its revision.
func (s *suite) healthy(t *testing.T, p *v1.Provider) string {
	t.Helper()
	s.until(t, p, func(ready v1.Condition) bool {
		s.report(t, p.Status.CurrentRevision)
		return ready.Status == corev1.ConditionTrue
	})
	return p.Status.CurrentRevision
}

// report sets the condition of a revision that its runtime is healthy.
func (s *suite) report(t *testing.T, name string) {
	t.Helper()
	var rev v1.ProviderRevision
	err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, &rev)
	if err == nil && rev.GetCondition(v1.TypeRuntimeHealthy).Status != corev1.ConditionTrue &&
		rev.Spec.DesiredState == v1.RevisionActive {
		rev.SetConditions(metav1.Now(), v1.RuntimeHealthy())
		err = s.Client.Status().Update(t.Context(), &rev)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
}

// waits waits until a package is not ready for a reason, and returns the message.
func (s *suite) waits(t *testing.T, p *v1.Provider, reason string) string {
	t.Helper()
	s.until(t, p, func(ready v1.Condition) bool {
		return ready.Status == corev1.ConditionFalse && string(ready.Reason) == reason
	})
	return p.GetCondition(v1.TypeReady).Message
}

func (s *suite) until(t *testing.T, p *v1.Provider, is func(v1.Condition) bool) {
	t.Helper()
	wait.Until(t, env.Limit, p.Name+" is as wanted", func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		ready := p.GetCondition(v1.TypeReady)
		return string(ready.Reason) + " " + ready.Message, p.Status.ObservedGeneration == p.Generation && is(ready)
	})
}

// may reports whether a ServiceAccount of the home namespace has a permission:
// "verb group/resource/subresource@namespace".
func (s *suite) may(t *testing.T, account, question string) bool {
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
	if err := s.Client.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// allowed waits until the API server grants permissions.
func (s *suite) allowed(t *testing.T, account string, questions ...string) {
	t.Helper()
	for _, q := range questions {
		wait.Until(t, env.Limit, account+" may "+q, func() (string, bool) { return "no", s.may(t, account, q) })
	}
}

// denied waits until the API server denies permissions.
func (s *suite) denied(t *testing.T, account string, questions ...string) {
	t.Helper()
	for _, q := range questions {
		wait.Until(t, env.Limit, account+" may not "+q, func() (string, bool) { return "yes", !s.may(t, account, q) })
	}
}

// absent checks that an object does not exist.
func (s *suite) absent(t *testing.T, o client.Object, name string) {
	t.Helper()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, o); !apierrors.IsNotFound(err) {
		t.Errorf("%T %s: %v, want none", o, name, err)
	}
}

// identity returns the configuration of a ServiceAccount of the home namespace.
func (s *suite) identity(t *testing.T, name string) *rest.Config {
	t.Helper()
	s.EnsureCreated(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}})
	return s.ServiceAccount(t, home, name)
}

// provider returns a package.yaml: metadata with annotations and permission requests, and CRDs.
func provider(name, metadata, spec string, definitions ...string) string {
	return fmt.Sprintf(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: %s\n%sspec:\n  crossplane: {version: \">=1.0.0\"}\n%s",
		name, metadata, spec,
	) +
		strings.Join(definitions, "")
}

// requests returns the permissionRequests of metadata. Each rule is a line of JSON.
func requests(rules ...string) string {
	return "  controller:\n    permissionRequests:\n    - " + strings.Join(rules, "\n    - ") + "\n"
}

// crd returns the CRD of a resource with the name "plural.group".
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
