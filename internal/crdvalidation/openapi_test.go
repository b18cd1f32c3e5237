package crdvalidation_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// The schema of a kind is the one of its CRD, or of a document of the API server, without references.
func TestOpenAPI(t *testing.T) {
	var s crdvalidation.Schemas
	crd, err := yaml.YAMLToJSON([]byte(boats))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddCRD(crd, "boats"); err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(env.New(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := client.RESTClient().Get().AbsPath("/openapi/v3/apis/apps/v1").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddOpenAPI(raw); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		apiVersion, kind string
		path             string
		want             any
	}{
		{"schemas.example.org/v1", "Boat", "properties.spec.properties.length.maximum", 500.0},
		{"schemas.example.org/v1", "Boat", "properties.spec.properties.draft.x-kubernetes-int-or-string", true},
		{"apps/v1", "Deployment", "properties.spec.properties.template.properties.spec.properties.hostNetwork.type", "boolean"},
		{"apps/v1", "Deployment", "properties.metadata.properties.name.type", "string"},
	} {
		got, err := s.OpenAPI(schema.FromAPIVersionAndKind(tc.apiVersion, tc.kind))
		if err != nil {
			t.Errorf("%s: %v", tc.kind, err)
		}
		var value any = got
		for part := range strings.SplitSeq(tc.path, ".") {
			m, _ := value.(map[string]any)
			value = m[part]
		}
		if value != tc.want {
			t.Errorf("%s of %s is %v, want %v", tc.path, tc.kind, value, tc.want)
		}
	}
	for _, kind := range []string{"DeleteOptions", "Unknown"} {
		if got, err := s.OpenAPI(schema.FromAPIVersionAndKind("apps/v1", kind)); got != nil || err != nil {
			t.Errorf("%s has the schema %v, %v", kind, got, err)
		}
	}
}

func TestAddOpenAPIRefusesOtherDocuments(t *testing.T) {
	for _, text := range []string{
		"", "[]", "{}", `{"components":{}}`, `{"components":{"schemas":{"a":{"x-kubernetes-group-version-kind":"b"}}}}`,
	} {
		var s crdvalidation.Schemas
		if err := s.AddOpenAPI([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	for name, text := range map[string]string{
		"a missing schema": `{"components":{"schemas":{"a":{"x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"K"}],"properties":{"b":{"$ref":"#/components/schemas/c"}}}}}}`,
		"another place":    `{"components":{"schemas":{"a":{"x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"K"}],"properties":{"b":{"$ref":"x"}}}}}}`,
	} {
		var s crdvalidation.Schemas
		if err := s.AddOpenAPI([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := s.OpenAPI(schema.FromAPIVersionAndKind("g/v1", "K")); err == nil {
			t.Errorf("a reference to %s gives %v", name, got)
		}
	}
}
