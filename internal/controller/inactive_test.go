package controller_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// A revision that is not activated yet writes no object.
func TestInactiveRevisionCreatesNoObjects(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "waitingrev.test"
	p := env.NewProvider("waiting", pushed(t, r, "waiting", provider("waiting", crd(group, "Kept", "one"))))
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	next, _ := r.push(t, "acme/waiting:v2", provider("waiting", crd(group, "Kept", "two"), crd(group, "Added", "two")))
	s.audit.Reset(group)
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		p.Spec.RevisionActivationPolicy, p.Spec.Package = v1.ManualActivation, next
	})
	untilWaits(t, s, p)
	if got := s.audit.Writes(group); len(got) > 0 {
		t.Errorf("a revision that waits wrote %v", got)
	}
	if got := schemaDescription(t, s, "kepts."+group); got != "one" {
		t.Errorf("the object is of version %s", got)
	}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "addeds." + group}, newCRD()); !apierrors.IsNotFound(err) {
		t.Errorf("a revision that waits created an object (%v)", err)
	}
}

// An inactive revision that once established its objects does not need its content any more.
func TestInactiveRevisionPullsNothing(t *testing.T) {
	s := newEnv(t)
	stop := s.start(t)
	r := newRegistry(t)
	first, old := r.push(t, "acme/inactive:v1", provider("inactive", crd("inactive.test", "Thing", "one")))
	second, current := r.push(t, "acme/inactive:v2", provider("inactive", crd("inactive.test", "Thing", "two")))
	p := env.NewProvider("inactive", first)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	upgradeTo(t, s, p, second)
	stop()
	if err := os.RemoveAll(s.folder); err != nil {
		t.Fatal(err)
	}
	r.reset()
	s.start(t)
	waitReconciled(t, s.Env, p)
	untilSettled(t, s, p)
	eventually(t, "the active content is back", func() bool { return len(r.requests(current.String())) > 0 })
	if seen := r.requests(old.String()); len(seen) > 0 {
		t.Errorf("the content of an inactive revision was pulled: %v", seen)
	}
}

// The CRDs of a Function describe the schema of its input, and are not installed
// (xpkg specification, "Function Package Requirements").
//
// hardening: E7
func TestFunctionInstallsNothing(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	p := &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "function-nothing"}}
	p.Spec.Package = pushed(t, r, "nothing", meta("Function", "nothing", "")+crd("functioninput.test", "Input", "one"))
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	if refs := s.Revisions(t, p)[0].RevisionStatus().ObjectRefs; len(refs) > 0 {
		t.Errorf("objects of the function: %v", refs)
	}
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Name: "inputs.functioninput.test"}, newCRD(),
	); !apierrors.IsNotFound(err) {
		t.Errorf("the input of a function was installed (%v)", err)
	}
}

// A CRD with a conversion webhook gets the address of the runtime. Webhook
// configurations are installed after the runtime serves: before that they would
// reject every write.
func TestConversionHasTheAddressOfTheRuntime(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	converted := strings.Replace(crd("webhooks.test", "Thing", "one"), "spec:\n", `spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
`, 1)
	validating := `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: any}
webhooks:
- name: any.webhooks.test
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: any, namespace: any, path: /validate}}
  rules:
  - {apiGroups: [webhooks.test], apiVersions: [v1], resources: [things], operations: [CREATE]}
`
	p := env.NewProvider("webhooks", pushed(t, r, "webhooks", provider("webhooks", converted, validating)))
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	d := newCRD()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things.webhooks.test"}, d); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(d.Spec.Conversion.Webhook.ClientConfig.Service)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"namespace":"crossplane-system","name":"webhooks","path":"/convert","port":9443}`; string(raw) != want {
		t.Errorf("conversion by %s, want %s", raw, want)
	}
	var names []string
	for _, o := range s.Revisions(t, p)[0].RevisionStatus().ObjectRefs {
		names = append(names, o.Kind+"/"+o.Name)
	}
	if diff := cmp.Diff([]string{"CustomResourceDefinition/things.webhooks.test"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// An ImageConfig for the rewritten image applies, too.
func TestSecretForARewrittenImage(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	pushed(t, r, "inner", meta("Configuration", "inner", ""))
	r.setFault(forUser("inner"))
	s.CreateTemporary(t, rewriting("rewrite-private", "packages.private.invalid/", r.address+"/"))
	p := newConfiguration("image-rewrite-private", "packages.private.invalid/acme/inner:v1")
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "Unauthorized")
	s.CreateTemporary(t, pullSecret(t, s, "of-rewritten", r.address, "inner"))
	s.CreateTemporary(t, authenticating("secret-rewritten", r.address+"/acme/", "of-rewritten"))
	untilSettled(t, s, p)
	want := []v1.ImageConfigRef{
		{Name: "rewrite-private", Reason: v1.ImageConfigReasonRewrite},
		{Name: "secret-rewritten", Reason: v1.ImageConfigReasonPullSecret},
	}
	if diff := cmp.Diff(want, p.Status.AppliedImageConfigRefs); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
}
