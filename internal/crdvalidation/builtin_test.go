package crdvalidation_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// TestBuiltinKindsAreThoseOfTheAPIServer compares the scopes of the kinds of Kubernetes with those that an API server
// serves, and validates a resource of each kind.
func TestBuiltinKindsAreThoseOfTheAPIServer(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(env.New(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var s crdvalidation.Schemas
	s.AddBuiltin()
	known := 0
	for _, l := range lists {
		for _, r := range l.APIResources {
			kind := schema.FromAPIVersionAndKind(l.GroupVersion, r.Kind)
			if !s.Has(kind) {
				continue
			}
			known++
			if s.ClusterScoped(kind) == r.Namespaced {
				t.Errorf("%s: the API server reports namespaced = %t", kind, r.Namespaced)
			}
			object := map[string]any{
				"apiVersion": l.GroupVersion, "kind": r.Kind, "metadata": map[string]any{"name": "a"}, "wrong": "a",
			}
			got := s.Validate(t.Context(), object)
			if len(got) != 1 || got[0].Path != "wrong" || !strings.HasPrefix(got[0].Message, "unknown field") {
				t.Errorf("%s: %v", kind, got)
			}
		}
	}
	if known < 40 {
		t.Errorf("only %d kinds are known", known)
	}
}

func TestBuiltinResourcesHaveTheTypesOfTheirFields(t *testing.T) {
	var s crdvalidation.Schemas
	s.AddBuiltin()
	for text, want := range map[string]string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}, binaryData: {a: YQ==}}`:                                     "",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}`:                                                            "data.a",
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 1, targetPort: http}, {port: 2, targetPort: 3}]}}`:    "",
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, resources: {limits: {cpu: 0.5, memory: 1Gi}}}]}}`: "",
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{nam: a}]}}`:                                                "spec.containers[0].nam",
		`{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: 1}}}`:                                                                "metadata.labels.a",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:a"}, rules: []}`:                          "",
		`{apiVersion: v1, kind: Namespace, metadata: {name: a, creationTimestamp: null}, status: {}}`:                                     "",
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, p := range s.Validate(t.Context(), object) {
			paths = append(paths, p.Path)
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s: problems at %q, want %q", text, got, want)
		}
	}
}

func TestFieldPathsHaveTheirElements(t *testing.T) {
	for path, want := range map[string][]string{
		"spec.a": {"spec", "a"}, "spec.a[0].b": {"spec", "a", "0", "b"}, "metadata.labels[a.b/c]": {"metadata", "labels", "a.b/c"},
		"spec[a][*].b": {"spec", "a", "*", "b"}, `metadata.annotations["a.b"]`: {"metadata", "annotations", "a.b"},
		"": nil, "spec..a": nil, "spec.": nil, ".spec": nil, "spec[a": nil, "spec[]": nil,
	} {
		got, err := crdvalidation.ParseFieldPath(path)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: got %v and the error %v, want %v", path, got, err, want)
		}
	}
	for paths, want := range map[[2]string]bool{
		{"spec.a", "spec.a"}: true, {"spec.a", "spec.a.b"}: true, {"spec.a.b", "spec.a"}: true, {"spec.a", "spec.b"}: false,
		{"spec.a[*].b", "spec.a[1].b"}: true, {"spec.a[0].b", "spec.a[1].b"}: false,
	} {
		p, err := crdvalidation.ParseFieldPath(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		q, err := crdvalidation.ParseFieldPath(paths[1])
		if err != nil {
			t.Fatal(err)
		}
		if p.Covers(q) != want {
			t.Errorf("%v: got %t", paths, !want)
		}
	}
}

// Definitions that are added later are read with the first kind of their group, and each error is kept.
func TestDefinitionsAreReadOnFirstUse(t *testing.T) {
	var s crdvalidation.Schemas
	read := map[string]int{}
	for _, name := range []string{"boats.acme.example.org", "ships.acme.example.org", "ports.sea.example.org"} {
		s.AddLater(name, func() error {
			read[name]++
			return s.AddCRD([]byte("{"), "")
		})
	}
	kind := schema.GroupVersionKind{Group: "acme.example.org", Version: metav1.SchemeGroupVersion.Version, Kind: "Boat"}
	if !s.Group("acme.example.org") || s.Err() != nil || len(read) != 0 {
		t.Errorf("read before the first use: %v", read)
	}
	s.Has(kind)
	s.Has(kind)
	if len(read) != 2 || read["boats.acme.example.org"] != 1 || s.Err() == nil {
		t.Errorf("read %v with the error %v", read, s.Err())
	}
}
