package provide

import (
	"fmt"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// contentOf returns a package of a kind with one definition, whose served version v1 has a schema.
func contentOf(t *testing.T, kind, definition, schema string) *xpkg.Package {
	t.Helper()
	pkg, err := xpkg.Read(fmt.Appendf(nil, `apiVersion: meta.pkg.crossplane.io/v1
kind: %s
metadata: {name: x}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.s3.example.org}
spec:
  group: s3.example.org
  scope: Cluster
  names: {kind: %s, plural: buckets, singular: bucket, listKind: BucketList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: %s}}
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`, kind, definition, schema), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func TestContentsAreSources(t *testing.T) {
	provider, function := contentOf(t, "Provider", "Bucket", "{type: object}"), contentOf(t, "Function", "Bucket", "{type: object}")
	s := Packages{Name: "cache", All: []Package{
		{Repository: "xpkg.test/acme/s3", Version: "v1.0.0", Digest: oci.DigestOf([]byte("1")), Content: provider},
		{Repository: "xpkg.test/acme/function", Digest: oci.DigestOf([]byte("2")), Content: function},
	}}
	for text, want := range map[string]string{
		"Bucket.s3.example.org": "xpkg.test/acme/s3:v1.0.0", "buckets.s3.example.org/v1": "xpkg.test/acme/s3:v1.0.0",
		"Bucket.s3.example.org/v1alpha1": "", "Bucket.example.org": "", "Queue.s3.example.org": "",
	} {
		r := Rank(Request{Kind: kindRef(t, text), GroupPublishers: Publishers(s.Group("s3.example.org"))}, s.Candidates(kindRef(t, text)))
		got := ""
		if r.Decided != "" {
			got = r.Order[0].Ref()
		}
		if got != want {
			t.Errorf("%s: %s, %+v", text, got, r)
		}
		if DefinesKind(provider, kindRef(t, text)) != (want != "") || DefinesKind(function, kindRef(t, text)) {
			t.Errorf("%s is defined: %v, by the Function: %v", text, DefinesKind(provider, kindRef(t, text)), DefinesKind(function, kindRef(t, text)))
		}
	}
	if got := s.Candidates(kindRef(t, "Bucket.s3.example.org")); len(got) != 2 || !slices.Equal(got[0].Served, []string{"v1"}) || got[1].Role != Input || got[0].Cost != 1 {
		t.Errorf("%+v", got)
	}
	if got := s.Kinds(); len(got) != 1 || got[0].String() != "buckets.s3.example.org" {
		t.Errorf("%v", got)
	}
}

func TestSchemasAreCompared(t *testing.T) {
	first := contentOf(t, "Provider", "Bucket", `{type: object, required: [a], properties: {a: {type: string, description: one}, b: {type: string, enum: [x, y]}}}`)
	for schema, want := range map[string]Difference{
		`{type: object, required: [a], properties: {a: {type: string, description: two}, b: {type: string, enum: [y, x]}}}`:                        Equal,
		`{type: object, required: [a], properties: {a: {type: string}, b: {type: string, enum: [x, y, z]}, c: {type: string}}}`:                    Superset,
		`{type: object, required: [a, c], properties: {a: {type: string}, b: {type: string, enum: [x, y]}, c: {type: string}}}`:                    Different,
		`{type: object, required: [a], properties: {a: {type: integer}, b: {type: string, enum: [x, y]}}}`:                                         Different,
		`{type: object, required: [a], properties: {a: {type: string}}}`:                                                                           Different,
		`{type: object, properties: {a: {type: string}, b: {type: string, enum: [x, y]}}}`:                                                         Different,
		`{type: object, required: [a], properties: {a: {type: string}, b: {type: string, enum: [x, y]}}, x-kubernetes-validations: [{rule: "a"}]}`: Different,
	} {
		if got := CompareSchemas(first, contentOf(t, "Provider", "Bucket", schema), kindRef(t, "Bucket.s3.example.org")); got != want {
			t.Errorf("%s is %s, want %s", schema, got, want)
		}
	}
	if got := CompareSchemas(first, contentOf(t, "Provider", "Other", "{type: object}"), kindRef(t, "Bucket.s3.example.org")); got == Equal {
		t.Errorf("another kind is %s", got)
	}
}
