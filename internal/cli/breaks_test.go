package cli_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// pushBuckets publishes a provider with buckets that have fields, which are strings.
func (b bench) pushBuckets(t *testing.T, name, tag string, fields ...string) string {
	t.Helper()
	schema := "{type: object}"
	if len(fields) > 0 {
		schema = "{type: object, properties: {" + strings.Join(fields, ": {type: string}, ") + ": {type: string}}}"
	}
	return publish.Stream(
		t, b.registry, name, tag,
		[]byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: p\n"+strings.Replace(
			publish.Definition(name+".breaks.test", "Bucket", tag), "{type: object, x-kubernetes-preserve-unknown-fields: true}",
			schema, 1,
		)),
	).String()
}

// bucketFields returns the fields of the CRD of buckets in the cluster.
func (b bench) bucketFields(t *testing.T, name string) []string {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "buckets." + name + ".breaks.test"}, crd); err != nil {
		t.Fatal(err)
	}
	var out []string
	for field := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
		out = append(out, field)
	}
	slices.Sort(out)
	return out
}

// installBuckets installs a provider with buckets, of which three have the field acl.
func (b bench) installBuckets(t *testing.T, name string) {
	t.Helper()
	b.must(
		t, 0, "install", "provider", b.pushBuckets(t, name, "v1", "acl", "color", "region"), name, "--wait", "1m",
	)
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "provider", name, "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	for bucket, spec := range map[string]map[string]any{
		"a": {"acl": "private", "color": "red"}, "b": {"acl": "private"}, "c": {"acl": "public", "color": "red"},
		"d": {"color": "red"}, "e": {},
	} {
		if err := b.client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": name + ".breaks.test/v1", "kind": "Bucket", "metadata": map[string]any{"name": bucket}, "spec": spec,
		}}); err != nil {
			t.Fatal(err)
		}
	}
}

// A version that breaks custom resources is refused before the first write, and names them. A user accepts that for
// this version alone.
func TestAVersionThatBreaksCustomResourcesNeedsConsent(t *testing.T) {
	const name = "accepting"
	b := newBench(t)
	b.installBuckets(t, name)
	b.pushBuckets(t, name, "v2", "color", "region")
	b.pushBuckets(t, name, "v3", "region")
	b.pushBuckets(t, name, "v4")
	crd := "buckets." + name + ".breaks.test"
	refused := []string{
		"BreaksObjects: .*CustomResourceDefinition " + crd + " breaks 3 of 5 Buckets: a, b, c: \\.spec\\.acl is removed and has a value",
		"run `xpkg update provider/" + name + " .*:v2.* --accept " + crd + "/FieldRemoved`",
	}
	b.must(t, 9, "plan", "update", name, "v2").prints(t, refused...)
	var plan planner.Plan
	e := b.must(t, 9, "plan", "update", name, "v2", "-o", "json")
	if err := json.Unmarshal([]byte(e.out), &plan); err != nil {
		t.Fatal(err)
	}
	if j := plan.Objects.Judgements; len(j) != 1 || j[0].CRD != crd || j[0].Objects != 5 || j[0].Broken != 3 ||
		len(j[0].Findings) != 1 || !slices.Equal(j[0].Findings[0].Objects, []string{"a", "b", "c"}) {
		t.Errorf("judgements: %+v", j)
	}
	b.must(t, 9, "update", name, "v2", "--yes", "--wait", "1m").prints(t, refused...)
	b.must(t, 3, "update", name, "v2", "--yes", "--accept", "buckets/FieldRemoved").
		prints(t, `"buckets/FieldRemoved" is not CRD/RULE`)
	b.must(t, 9, "update", name, "v2", "--yes", "--wait", "1m", "--accept", crd+"/TypeChanged").prints(t, refused...)
	if got := b.bucketFields(t, name); len(got) != 3 {
		t.Fatalf("the refused version was written: %q", got)
	}

	file := filepath.Join(t.TempDir(), "plan.json")
	b.must(t, 2, "plan", "update", name, "v2", "--accept", crd+"/FieldRemoved", "--out", file).prints(
		t, "^custom resources of changed kinds:$",
		"Bucket: 3 of 5 objects break, which is accepted: a, b, c: \\.spec\\.acl is removed and has a value",
	)
	b.must(t, 0, "apply", file, "--yes", "--wait", "1m")
	if got := b.bucketFields(t, name); !slices.Equal(got, []string{"color", "region"}) {
		t.Fatalf("the accepted version is not written: %q", got)
	}
	want := crd + "/FieldRemoved@" + plan.Content.Digest
	if got := b.provider(t, name).Annotations[revision.AnnotationAcceptBreaks]; got != want {
		t.Errorf("the package accepts %q, want %q", got, want)
	}

	// The consent was for the second version.
	b.must(t, 9, "update", name, "v3", "--yes", "--wait", "1m").prints(t, "breaks 3 of 5 Buckets: a, c, d: \\.spec\\.color is removed")
	b.must(t, 0, "update", name, "v3", "--yes", "--wait", "1m", "--accept", crd+"/FieldRemoved")
	got := b.provider(t, name).Annotations[revision.AnnotationAcceptBreaks]
	if items := strings.Split(got, ";"); len(items) != 1 || got == want {
		t.Errorf("the package accepts %q", got)
	}

	// No bucket has a region.
	b.must(t, 0, "update", name, "v4", "--yes", "--wait", "1m").
		prints(t, "Bucket: \\.spec\\.region was removed; none of 5 objects has it")
	if got := b.bucketFields(t, name); len(got) != 0 {
		t.Errorf("the version is not written: %q", got)
	}
}

// A transaction that returns a package takes its consents back.
func TestAReturnedVersionLosesItsConsentToBreak(t *testing.T) {
	const name = "returning"
	b := newBench(t)
	b.installBuckets(t, name)
	b.pushBuckets(t, name, "v2", "color", "region")
	accept := "buckets." + name + ".breaks.test/FieldRemoved"
	b.must(t, 9, "update", name, "v2", "--yes", "--atomic", "--wait", "1m").prints(t, "BreaksObjects: ")
	b.must(t, 11, "update", name, "v2", "--yes", "--accept", accept, "--atomic", "--wait", "1ns").
		prints(t, "All changes were undone: ")
	if got := b.provider(t, name).Annotations[revision.AnnotationAcceptBreaks]; got != "" {
		t.Errorf("the package accepts %q", got)
	}
	b.must(t, 0, "update", name, "v2", "--yes", "--accept", accept, "--atomic", "--wait", "1m")
	if got := b.provider(t, name).Annotations[revision.AnnotationAcceptBreaks]; !strings.HasPrefix(got, accept+"@sha256:") {
		t.Errorf("the package accepts %q", got)
	}
}
