package controller_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// rejections counts the writes of Services that the API server rejects.
type rejections struct {
	next  http.RoundTripper
	count *atomic.Int32
}

func (r rejections) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/services") &&
		response.StatusCode == http.StatusForbidden {
		r.count.Add(1)
	}
	return response, err
}

// denyServices installs a policy that forbids the Services of one package, as a quota does, and
// returns the function that removes it.
func denyServices(t *testing.T, s *testEnv) (allow func()) {
	t.Helper()
	metadata := metav1.ObjectMeta{Name: "services.quota.test"}
	forbidden := metav1.StatusReasonForbidden
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metadata, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
			}}}},
		Validations: []admissionv1.Validation{{
			Expression: "!object.metadata.name.startsWith('quota')", Message: "no Services in this namespace",
			Reason: &forbidden,
		}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metadata, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: metadata.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}}
	s.CreateTemporary(t, policy)
	s.CreateTemporary(t, binding)
	eventually(t, "the policy denies", func() bool {
		probe := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quota-probe"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
		}
		return apierrors.IsForbidden(s.Client.Create(t.Context(), probe, client.DryRunAll))
	})
	return func() {
		if err := s.Client.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
}

// A rejected Service of a runtime is in the condition of the package. The manager retries with
// backoff, and installs the package once its Service is allowed.
//
// hardening: I-11
func TestRejectedServiceIsReported(t *testing.T) {
	s := newEnv(t)
	s.options.Runtimes, s.options.Settle = runtime.Everywhere(runtime.Deployment), time.Second
	s.StartKubelet(t, controller.DefaultNamespace)
	var rejected atomic.Int32
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return rejections{next, &rejected} })
	allow := denyServices(t, s)
	s.start(t)
	r := newRegistry(t)
	ref, _ := r.push(t, "acme/quota:v1", provider("quota", crd("quota.test", "Thing", "one")))
	p := env.NewProvider("quota", ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "no Services in this namespace")

	// Another package is installed meanwhile.
	otherRef, _ := r.push(t, "acme/unlimited:v1", meta("Configuration", "unlimited", ""))
	other := v1.NewPackage(v1.ConfigurationKind)
	other.SetName("unlimited")
	other.PackageSpec().Package = otherRef
	s.CreateTemporary(t, other)
	untilSettled(t, s, other)
	const most = 30
	if got := rejected.Load(); got == 0 || got > most {
		t.Errorf("%d Services were rejected, want between 1 and %d", got, most)
	}

	allow()
	untilSettled(t, s, p)
	remove(t, s, p)
	remove(t, s, other)
}
