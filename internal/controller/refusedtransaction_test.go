package controller_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// onWrite calls a function before the first write of an object.
type onWrite struct {
	next   http.RoundTripper
	object string
	do     func()
}

func (o onWrite) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, o.object) && r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" {
		o.do()
	}
	return o.next.RoundTrip(r)
}

// If the cluster refuses a write in spite of the plan, and retrying cannot help, a transaction returns at once: long
// before its deadline.
func TestTransactionReturnsAtOnceFromARefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse func(t *testing.T, s *testEnv, group string)
		reason string
	}{
		// A policy does not deny dry runs.
		"refused-denied": {denyDefinitions, "AdmissionDenied"},
		"refused-broken": {func(t *testing.T, s *testEnv, group string) {
			if err := s.Client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "t"},
				"spec": map[string]any{"acl": "private"},
			}}); err != nil {
				t.Error(err)
			}
		}, "BreaksObjects"},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := newEnv(t), newRegistry(t)
			s.options.ActivationDeadline = time.Hour
			group := name + ".test"
			stream := func(schema string) string {
				return provider(name, strings.Replace(
					crd(group, "Thing", "text"), "{type: object, x-kubernetes-preserve-unknown-fields: true}", schema, 1,
				))
			}
			first, _ := r.push(t, "acme/"+name+":v1", stream("{type: object, properties: {acl: {type: string}}}"))
			second, _ := r.push(t, "acme/"+name+":v2", stream("{type: object}"))
			one, _ := r.push(t, "acme/"+name+"-a:v1", configuration(name+"-a", name+"-a.test", "one"))
			two, _ := r.push(t, "acme/"+name+"-a:v2", configuration(name+"-a", name+"-a.test", "two"))
			refuse := sync.OnceFunc(func() { tc.refuse(t, s, group) })
			s.Config = rest.CopyConfig(s.Config)
			s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return onWrite{next, "/providers/" + name, func() {
					// The plan is made when the transaction writes the package.
					x := &v1alpha1.Transaction{}
					if s.Client.Get(t.Context(), client.ObjectKey{Name: name}, x) == nil {
						refuse()
					}
				}}
			})
			s.start(t)
			p, a := env.NewProvider(name, first), env.NewPackage(v1.ConfigurationKind, name+"-a", one)
			s.CreateTemporary(t, p, a)
			s.WaitReady(t, p)
			s.WaitReady(t, a)
			x := newTransaction(name, wantPackage(v1.ConfigurationKind, name+"-a", two), wantPackage(v1.ProviderKind, name, second))
			x.Spec.Deadline.Duration = time.Hour
			s.CreateTemporary(t, x)
			status := untilEnded(t, s, x)
			if status.Phase != v1alpha1.Returned || status.Reason != tc.reason {
				t.Errorf("%+v", status)
			}
			for object, want := range map[string]string{v1.ConfigurationKind + "/" + name + "-a": one, v1.ProviderKind + "/" + name: first} {
				kind, object, _ := strings.Cut(object, "/")
				if got := referenceOf(t, s, kind, object); got != want {
					t.Errorf("%s is installed from %q, want %q", object, got, want)
				}
			}
		})
	}
}

// denyDefinitions installs a policy that denies updates of the definitions of a group, except in a dry run.
func denyDefinitions(t *testing.T, s *testEnv, group string) {
	t.Helper()
	denyUnless(t, s, "apiextensions.k8s.io", "customresourcedefinitions",
		"request.dryRun || object.spec.group != '"+group+"'")
	probe := &unstructured.Unstructured{}
	probe.SetAPIVersion("apiextensions.k8s.io/v1")
	probe.SetKind("CustomResourceDefinition")
	probe.SetName("things." + group)
	eventually(t, "the policy denies", func() bool {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"probe":"a"}}}`))
		err := s.Client.Patch(t.Context(), probe.DeepCopy(), patch)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
	})
}
