package crd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFromMRD(t *testing.T) {
	got, err := FromMRD([]byte(`{"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceDefinition",
"metadata": {"name": "as.b.c", "labels": {"x": "y"}}, "spec": {"group": "b.c", "connectionDetails": [{"name": "password"}], "state": "Active",
"names": {"kind": "A", "plural": "as"}, "scope": "Cluster", "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"maximum": 9007199254740993}}}]}}`))
	want := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"labels":{"x":"y"},"name":"as.b.c"},` +
		`"spec":{"group":"b.c","names":{"kind":"A","plural":"as"},"scope":"Cluster","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"maximum":9007199254740993}}}]}}`
	if d := cmp.Diff(want, string(got)); d != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, d)
	}
	for _, text := range []string{`{"spec": 1}`, `{}`, `[]`, ``} {
		if _, err := FromMRD([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
