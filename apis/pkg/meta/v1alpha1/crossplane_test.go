package v1alpha1

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"
)

// TestEarlyMetadataFormsAreRead reads the shapes that the first packages have. Package format, The
// Packaged Format.
func TestEarlyMetadataFormsAreRead(t *testing.T) {
	cases := map[string]struct {
		doc  string
		want string // the version constraint
		err  bool
	}{
		"string":         {doc: `{spec: {crossplane: v0.13.0}}`, want: "v0.13.0"},
		"object":         {doc: `{spec: {crossplane: {version: ">=v1.0.0"}}}`, want: ">=v1.0.0"},
		"number":         {doc: `{spec: {crossplane: 1}}`, err: true},
		"list":           {doc: `{spec: {crossplane: [v0.13.0]}}`, err: true},
		"empty string":   {doc: `{spec: {crossplane: ""}}`},
		"quoted, spaced": {doc: "spec:\n  crossplane:   'v1'\n", want: "v1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Provider{}
			err := yaml.UnmarshalStrict([]byte(c.doc), p)
			if (err != nil) != c.err {
				t.Fatalf("error is %v, want one: %v", err, c.err)
			}
			if err == nil && p.Spec.Crossplane.Version != c.want {
				t.Errorf("version is %q, want %q", p.Spec.Crossplane.Version, c.want)
			}
		})
	}
}

func TestPermissionRequests(t *testing.T) {
	p := &Provider{}
	doc := `
spec:
  controller:
    image: example/provider-example:v0.1.0
    permissionRequests: [{apiGroups: [a], resources: [b], verbs: [get]}]
  permissionRequests: [{apiGroups: [c], resources: [d], verbs: ["*"]}]`
	if err := yaml.UnmarshalStrict([]byte(doc), p); err != nil {
		t.Fatal(err)
	}
	got := []string{p.Spec.Controller.PermissionRequests[0].APIGroups[0], p.Spec.PermissionRequests[0].APIGroups[0]}
	if diff := cmp.Diff([]string{"a", "c"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzCrossplaneConstraints(f *testing.F) {
	for _, s := range []string{`"v0.13.0"`, `{"version":">=v1.0.0"}`, `{}`, `null`, ` "a"`, `[]`, `{"version":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c, again CrossplaneConstraints
		if yaml.Unmarshal(b, &c) != nil {
			return
		}
		out, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(out, &again); err != nil || again != c {
			t.Fatalf("%q reads as %+v, is written as %q and then reads as %+v (%v)", b, c, out, again, err)
		}
	})
}
