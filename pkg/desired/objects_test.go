package desired

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

const stream = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: desired}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.desired.test
  labels: {from: package, team: theirs}
spec:
  group: desired.test
  scope: Cluster
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  conversion: {strategy: None}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

var thing = plan.Ref{
	APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "things.desired.test",
}

// of returns the objects of a package, read in two ways: from its YAML, and from
// its index. Both must be equal.
func of(t *testing.T, stream string, opts Options) *Objects {
	t.Helper()
	pkg, err := xpkg.Read([]byte(stream), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := Of(pkg, opts)
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.New(pkg)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := index.Blob(pkg)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := x.Package(bytes.NewReader(bytes.Join(texts, nil)), xpkg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Of(kept, opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fresh.Desired(), again.Desired()); diff != "" {
		t.Errorf("the package wants something else when it is read from its index (-YAML +index):\n%s", diff)
	}
	return fresh
}

func only(t *testing.T, o *Objects) plan.Desired {
	t.Helper()
	if len(o.Desired()) != 1 {
		t.Fatalf("%d objects, want one: %v", len(o.Desired()), o.Refs())
	}
	return o.Desired()[0]
}

func TestReservedKeysOfThePackageAreIgnored(t *testing.T) {
	marked := strings.Replace(stream,
		"labels: {from: package, team: theirs}", "labels: {xpkg.dev/permissive: x, kept: x}\n"+
			`  annotations: {xpkg.dev/adopted-by: Provider/other, crossplane.io/paused: "true", kept: x}`, 1)
	got := of(t, marked, Options{Package: "desired"}).Desired()[0]
	want := map[string]string{"kept": "x"}
	if diff := cmp.Diff([]map[string]string{want, want}, []map[string]string{got.Labels, got.Annotations}); diff != "" {
		t.Errorf("labels and annotations (-want +got):\n%s", diff)
	}
}

func TestCommonLabelsWin(t *testing.T) {
	d := only(t, of(t, stream, Options{
		Labels: map[string]string{"team": "ours", "more": "yes"}, Annotations: map[string]string{"note": "x"},
	}))
	if diff := cmp.Diff(map[string]string{"from": "package", "team": "ours", "more": "yes"}, d.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "x"}, d.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// The digest stands for the content, wherever it comes from, and for nothing that
// is written as metadata alone.
func TestDigestIsOfTheContent(t *testing.T) {
	base := only(t, of(t, stream, Options{}))
	same := map[string]Options{
		"Labels":      {Labels: map[string]string{"a": "b"}},
		"Annotations": {Annotations: map[string]string{"a": "b"}},
	}
	for name, opts := range same {
		if got := only(t, of(t, stream, opts)).Digest; got != base.Digest {
			t.Errorf("%s changed the digest of the content", name)
		}
	}
	other := only(t, of(t, strings.Replace(stream, "type: object", "type: object, description: other", 1), Options{}))
	if other.Digest == base.Digest {
		t.Error("other content has the same digest")
	}
	where := Options{Webhooks: Service{Name: "a", Namespace: "b"}}
	if got := only(t, of(t, stream, where)).Digest; got != base.Digest {
		t.Error("where webhooks are answered changed the digest of what calls none")
	}
	converted := strings.Replace(stream, "None", "Webhook", 1)
	if a, b := only(t, of(t, converted, Options{})).Digest, only(t, of(t, converted, where)).Digest; a == b {
		t.Error("where webhooks are answered is no part of the digest of what calls them")
	}
}

func TestDefinitionsAreMissingUntilServed(t *testing.T) {
	o := of(t, stream, Options{})
	if o.Definitions() != 1 {
		t.Fatalf("%d definitions, want 1", o.Definitions())
	}
	if diff := cmp.Diff([]string{thing.Name}, o.Missing(nil)); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	served := map[schema.GroupResource]bool{{Group: "desired.test", Resource: "things"}: true}
	if missing := o.Missing(served); len(missing) > 0 {
		t.Errorf("missing although served: %v", missing)
	}
}

// A conversion webhook is answered by the program of the package, wherever its
// author thought that would be.
//
// hardening: E10
func TestConversionWebhookIsTheRuntimeOfThePackage(t *testing.T) {
	converted := strings.Replace(stream, "{strategy: None}",
		"{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://elsewhere.example.org'}}}",
		1)
	o := of(t, converted, Options{Webhooks: Service{Name: "desired", Namespace: "home"}})
	raw, err := o.Content(thing)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Conversion struct {
				Webhook struct {
					ClientConfig map[string]any `json:"clientConfig"`
				} `json:"webhook"`
			} `json:"conversion"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"service": map[string]any{
		"name": "desired", "namespace": "home", "port": float64(9443), "path": "/convert",
	}}
	if diff := cmp.Diff(want, crd.Spec.Conversion.Webhook.ClientConfig); diff != "" {
		t.Errorf("clientConfig (-want +got):\n%s", diff)
	}
}

// hardening: E7
func TestPackagesThatAreNotInstalled(t *testing.T) {
	function := strings.Replace(stream, "kind: Provider", "kind: Function", 1)
	if refs := of(t, function, Options{}).Refs(); len(refs) > 0 {
		t.Errorf("a Function brings %v", refs)
	}
	if _, err := of(t, stream, Options{}).Content(plan.Ref{Kind: "Other"}); err == nil {
		t.Error("content of an object that the package does not have")
	}
}

func TestOverlay(t *testing.T) {
	a, b := map[string]string{"x": "1", "y": "1"}, map[string]string{"y": "2"}
	was := maps.Clone(a)
	if diff := cmp.Diff(map[string]string{"x": "1", "y": "2"}, Overlay(a, nil, b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if Overlay(nil, map[string]string{}) != nil || !maps.Equal(a, was) {
		t.Error("nothing over nothing is something, or a layer was changed")
	}
}
