package desired

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const webhook = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: checks}
webhooks:
- name: checks.desired.test
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: replaced, namespace: replaced, path: /validate}, caBundle: QUFB}
- name: more.desired.test
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://elsewhere.example.org/more?x=y"}
- name: least.desired.test
  admissionReviewVersions: [v1]
  sideEffects: None
`

var home = Options{Package: "desired", Webhooks: Service{Name: "desired", Namespace: "home"}}

func configuration(name string) plan.Ref {
	return plan.Ref{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: name}
}

// Webhooks are answered by the program of the package, wherever its author thought
// that would be, at the author's paths.
func TestWebhooksAreServedByTheRuntime(t *testing.T) {
	o := of(t, stream+webhook, home)
	o.SetWebhookService(home.Webhooks, []byte("authorities"))
	raw, err := o.Content(configuration("crossplane-provider-desired"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Webhooks []struct {
			ClientConfig map[string]any `json:"clientConfig"`
		} `json:"webhooks"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for i, path := range []any{"/validate", "/more", nil} {
		service := map[string]any{"name": "desired", "namespace": "home", "port": float64(9443)}
		if path != nil {
			service["path"] = path
		}
		want := map[string]any{"service": service, "caBundle": "YXV0aG9yaXRpZXM="}
		if diff := cmp.Diff(want, got.Webhooks[i].ClientConfig); diff != "" {
			t.Errorf("webhook %d (-want +got):\n%s", i, diff)
		}
	}
}

// No webhook of a package receives the requests with which packages are removed, Transactions return packages, and
// Leases are renewed.
func TestWebhooksExemptPackagesAndLeases(t *testing.T) {
	const exemption = `{"expression":"!(request.resource.group in [\"coordination.k8s.io\", \"pkg.crossplane.io\", \"xpkg.dev\"])","name":"xpkg.dev/exempt"}`
	for groups, want := range map[string]string{
		`apiGroups: ["*"]`:                     "[" + exemption + "]",
		"apiGroups: [apps, pkg.crossplane.io]": "[" + exemption + "]",
		"apiGroups: [coordination.k8s.io]":     "[" + exemption + "]",
		"apiGroups: [xpkg.dev]":                "[" + exemption + "]",
		"apiGroups: [apps]":                    "null",
		`apiGroups: ["*"]}], matchConditions: [{name: mine, expression: "true"}, {name: xpkg.dev/exempt, expression: "true"}], unknown: [{`: `[{"expression":"true","name":"mine"},` +
			exemption + "]",
	} {
		o := of(t, stream+
			"---\n{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: x}, webhooks: [{rules: [{"+
			groups+"}]}]}\n", home)
		raw, err := o.Content(configuration("crossplane-provider-desired"))
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Webhooks []struct {
				MatchConditions json.RawMessage `json:"matchConditions"`
			} `json:"webhooks"`
		}
		var typed admissionregistrationv1.ValidatingWebhookConfiguration
		if err := errors.Join(json.Unmarshal(raw, &got), json.Unmarshal(raw, &typed)); err != nil {
			t.Fatal(err)
		}
		if w := typed.Webhooks[0]; !Exempts(w.Rules, w.MatchConditions) || want != "null" && Exempts(w.Rules, nil) {
			t.Errorf("%s: Exempts does not recognize the condition: %s", groups, raw)
		}
		if conditions := string(got.Webhooks[0].MatchConditions); conditions != want && (want != "null" || conditions != "") {
			t.Errorf("%s: match conditions %s, want %s", groups, conditions, want)
		}
	}
}

// The hash of the CA bundle is recorded on the objects that contain the bundle, and
// nowhere else: a new bundle causes no write of other objects.
func TestCABundleHashIsRecordedOnlyOnObjectsWithWebhooks(t *testing.T) {
	o := of(t, stream+webhook, home)
	if !o.CallsRuntime() || o.Desired()[0].CallsRuntime || !o.Desired()[1].CallsRuntime {
		t.Fatalf("who calls the program: %+v", o.Desired())
	}
	before := []plan.Desired{o.Desired()[0], o.Desired()[1]}
	o.SetWebhookService(Service{Name: "elsewhere", Namespace: "home"}, []byte("authorities"))
	if diff := cmp.Diff(before[0], o.Desired()[0]); diff != "" {
		t.Errorf("an object that calls nobody changed:\n%s", diff)
	}
	trusts := CABundleHash([]byte("authorities"))
	if d := o.Desired()[1]; d.Digest != before[1].Digest || d.CABundleHash != trusts+" elsewhere" ||
		CABundleHashOf(d.CABundleHash) != trusts || trusts == "" {
		t.Errorf("digest %s, trusts %q", d.Digest, d.CABundleHash)
	}
	if raw, err := o.Content(o.Refs()[1]); err != nil || !strings.Contains(string(raw), `"name":"elsewhere"`) {
		t.Errorf("whoever runs the program knows where it answers: %s, %v", raw, err)
	}
	o.SetWebhookService(Service{}, nil)
	if d := o.Desired()[1]; d.CallsRuntime {
		t.Errorf("without authorities the program is called: %+v", d)
	}
	if CABundleHash(nil) != "" || CABundleHash([]byte("a")) == CABundleHash([]byte("b")) {
		t.Error("a fingerprint stands for nothing")
	}
	if of(t, stream, home).CallsRuntime() {
		t.Error("a package without webhooks calls its program")
	}
}

// Where two objects would get the same name, both are there.
func TestNamesOfWebhookConfigurations(t *testing.T) {
	mutating := strings.ReplaceAll(strings.Replace(webhook, "Validating", "Mutating", 1), "checks", "defaults")
	o := of(t, stream+webhook+strings.ReplaceAll(webhook, "checks", "others")+mutating, home)
	second := configuration("crossplane-provider-desired-others")
	third := configuration("crossplane-provider-desired")
	third.Kind = "MutatingWebhookConfiguration"
	want := []plan.Ref{thing, configuration("crossplane-provider-desired"), second, third}
	if diff := cmp.Diff(want, o.Refs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Numbers in a schema keep the author's notation, also where a float is not exact.
func TestConversionKeepsNumbers(t *testing.T) {
	converted := strings.Replace(
		stream, "{strategy: None}", "{strategy: Webhook, webhook: {clientConfig: {service: {path: /elsewhere}}}}", 1,
	)
	converted = strings.Replace(converted, "type: object", "type: integer, maximum: 9223372036854775807", 1)
	o := of(t, converted, home)
	o.SetWebhookService(home.Webhooks, []byte("authorities"))
	raw, err := o.Content(thing)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{":9223372036854775807", `"caBundle":"YXV0aG9yaXRpZXM="`, `"path":"/elsewhere"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
}

func TestUnknownWebhooks(t *testing.T) {
	for _, webhooks := range []string{
		"webhooks: {}", "webhooks: [text]", "webhooks: [{clientConfig: text}]", "webhooks: [{clientConfig: {service: text}}]",
	} {
		o := of(t, stream+
			"---\n{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: x}, "+
			webhooks+"}\n", home)
		if raw, err := o.Content(configuration("crossplane-provider-desired")); err == nil {
			t.Errorf("%s: %s", webhooks, raw)
		}
	}
}
