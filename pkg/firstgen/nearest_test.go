package firstgen_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/firstgen"
)

// messages returns the findings of a package as text.
func messages(pkg *firstgen.Package) []string {
	var out []string
	for _, f := range pkg.Findings {
		out = append(out, f.Place()+": "+f.Message)
	}
	return out
}

func TestMetadataOfEachVersionOfACRDIsKept(t *testing.T) {
	const dir = "resources/db.example.org/mysql/"
	pkg := mustRead(t, map[string]string{
		"resources/crd.yaml":                     "",
		dir + "v1alpha1/mysql.v1alpha1.crd.yaml": crdText("db.example.org", "MySQL", "v1alpha1"),
		dir + "v1alpha1/resource.yaml":           "id: mysql\ntitle: Old\nreadme: only here\n",
		dir + "v1alpha1/ui-schema.yaml":          "version: old",
		dir + "v1alpha1/icon.svg":                svg + "<!-- old -->",
		dir + "v1beta1/mysql.v1beta1.crd.yaml":   crdText("db.example.org", "MySQL", "v1beta1"),
		dir + "v1beta1/resource.yaml":            "id: MySQL\ntitle: New\n",
		dir + "v1beta1/ui-schema.yaml":           "version: new",
		dir + "v1beta1/icon.svg":                 svg,
	}, firstgen.Options{})
	r := pkg.Resources[0]
	got := []string{r.Meta.Title, r.Meta.Readme, r.UISchema, string(r.Icon.Data)}
	if diff := cmp.Diff([]string{"New", "only here", "version: new\n---\nversion: old", svg}, got); diff != "" {
		t.Errorf("metadata (-want +got)\n%s", diff)
	}
	want := []string{
		dir + "v1alpha1/icon.svg: the icon has no effect on CRD mysqls.db.example.org: " + dir +
			"v1beta1/icon.svg takes precedence",
		dir + "v1alpha1/resource.yaml: title of the file has no effect on CRD mysqls.db.example.org: " + dir +
			"v1beta1/resource.yaml takes precedence",
	}
	if diff := cmp.Diff(want, messages(pkg)); diff != "" {
		t.Errorf("findings (-want +got)\n%s", diff)
	}
}

func TestUISchemasOfOneKindAreConcatenated(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"resources/thing.ui-schema.yaml":    "a: 1\n---\nb: 2",
		"resources/thing.v1.ui-schema.yaml": "---\nc: 3\n",
		"resources/ui-schema.yaml":          "generic: true\n",
		"resources/resource.yaml":           "id: thing\ntitle: A\n",
		"resources/thing.resource.yaml":     "id: Thing\ntitle: A\noverview: more\n",
	}, firstgen.Options{})
	r := pkg.Resources[0]
	if got, want := r.CRD.Annotations[firstgen.AnnotationUISchema], "a: 1\n---\nb: 2\n---\nc: 3\n"; got != want {
		t.Errorf("UI schema %q, want %q", got, want)
	}
	if r.Meta.Title != "A" || r.Meta.Overview != "more" {
		t.Errorf("metadata %+v", r.Meta)
	}
	want := []string{
		"resources/ui-schema.yaml: the file has no effect: resources/thing.ui-schema.yaml precedes it for CRD things.a.example.org",
	}
	if diff := cmp.Diff(want, messages(pkg)); diff != "" {
		t.Errorf("findings (-want +got)\n%s", diff)
	}
}

func TestADescriptionIsAnOverview(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"resources/a.resource.yaml": "id: Thing\ndescription: first\n",
		"resources/b.resource.yaml": "id: Thing\noverview: second\ntitle: B\n",
	}, firstgen.Options{})
	r := pkg.Resources[0]
	if got := r.CRD.Annotations[firstgen.AnnotationResourceOverview]; got != "first" || r.Meta.Title != "B" {
		t.Errorf("overview %q, title %q", got, r.Meta.Title)
	}
	want := []string{
		"resources/b.resource.yaml: overview of the file has no effect on CRD things.a.example.org: resources/a.resource.yaml takes precedence",
	}
	if diff := cmp.Diff(want, messages(pkg)); diff != "" {
		t.Errorf("findings (-want +got)\n%s", diff)
	}
}

func TestAGroupFileAppliesOnlyToItsGroup(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"resources/group.yaml":       "group: A.example.org\ntitle: A\n",
		"resources/b.crd.yaml":       crdText("b.example.org", "Thing", "v1"),
		"resources/c/group.yaml":     "group: d.example.org\ntitle: D\n",
		"resources/c/c.crd.yaml":     crdText("c.example.org", "Thing", "v1"),
		"resources/c/other.icon.svg": svg,
	}, firstgen.Options{})
	var got []string
	for _, r := range pkg.Resources {
		got = append(got, r.CRD.Annotations[firstgen.AnnotationGroupTitle])
	}
	if diff := cmp.Diff([]string{"A", "", ""}, got); diff != "" {
		t.Errorf("titles (-want +got)\n%s", diff)
	}
	want := []string{
		"resources/c/group.yaml: the file applies to no CRD", "resources/c/other.icon.svg: the file applies to no CRD",
	}
	if diff := cmp.Diff(want, messages(pkg)); diff != "" {
		t.Errorf("findings (-want +got)\n%s", diff)
	}
}
