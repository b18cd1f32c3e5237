package firstgen_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestScalarsWithoutQuotesAreTheirTextWhereTextIsWanted(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"app.yaml": "apiVersion: 1.10\nversion: 1.0\ntitle: 2020\ncompany: yes\nkeywords: [1.50, true, null]\nmaintainers: [{name: 0x10}]\n",
		"install.yaml": strings.Replace(
			deployment, "metadata: {name: controller}",
			"metadata: {name: controller, labels: {core.crossplane.io/enabled: true, core.crossplane.io/version: 1.20}}", 1,
		),
		"resources/crd.yaml":      strings.Replace(crdText("a.example.org", "Thing", "v1"), `"1.0"`, "1.0", 1),
		"resources/b.crd.yaml":    strings.Replace(betaCRD, "metadata:\n", "metadata:\n  annotations: {size: 1.0}\n", 1),
		"resources/resource.yaml": "id: Thing\ntitle: 1.0\n",
	}, firstgen.Options{})
	got := []string{
		pkg.App.FormatVersion, pkg.App.Version, pkg.App.Title, pkg.App.Company, strings.Join(pkg.App.Keywords, ","),
		pkg.App.Maintainers[0].Name,
	}
	labels := pkg.Install.Deployment(firstgen.InstallOptions{}).Labels
	got = append(got, labels["core.crossplane.io/enabled"], labels["core.crossplane.io/version"])
	for _, r := range pkg.Resources {
		got = append(got, r.CRD.Labels["controller-tools.k8s.io"], r.CRD.Annotations["size"], r.Meta.Title)
	}
	want := []string{"1.10", "1.0", "2020", "yes", "1.50,true,", "0x10", "true", "1.20", "1.0", "", "1.0", "", "1.0", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestValuesOfAWrongTypeAreReportedWithTheirLines(t *testing.T) {
	_, err := read(t, tree(map[string]string{
		"app.yaml":     "# comment\n\ntitle: [a]\nkeywords: a\nmaintainers:\n- name: a\n- Jane\n",
		"install.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: two\n  paused: 3\n  template:\n    metadata:\n      labels: [a]\n",
		"resources/crd.yaml": strings.Replace(
			crdText("a.example.org", "Thing", "v1"), "scope: Namespaced", "scope: {a: b}", 1,
		),
		"resources/resource.yaml": "&a a: 1\ntitle: {}\n",
	}), firstgen.Options{})
	var got []string
	for _, f := range xpkg.Findings(err) {
		got = append(got, f.Place()+": "+f.Message)
	}
	want := []string{
		"app.yaml:3: title is a list, want text",
		"app.yaml:4: keywords is text, want a list",
		"app.yaml:7: maintainers[1] is text, want fields",
		"install.yaml:5: spec.replicas is text, want a number",
		"install.yaml:6: spec.paused is a number, want true or false",
		"install.yaml:9: spec.template.metadata.labels is a list, want fields",
		"resources/crd.yaml:8: spec.scope is a map, want text",
		"resources/resource.yaml:2: title is a map, want text",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEveryRequiredCRDIsReportedAtItsLine(t *testing.T) {
	_, err := read(t, tree(map[string]string{
		"app.yaml": "dependsOn:\n- crd: a.example.org/v1\n- crd: deployments.apps/v1\n- crd: '*.apps/v1'\n-\n  crd: secrets/v1\nversion: not a tag!\n",
	}), firstgen.Options{Tag: "v1"})
	var got []string
	for _, f := range xpkg.Findings(err) {
		got = append(got, f.Place())
		if f.Code.Name != firstgen.ErrInvalidApp.Name {
			t.Errorf("code %s of %s", f.Code.Name, f)
		}
	}
	if diff := cmp.Diff([]string{"app.yaml:3", "app.yaml:4", "app.yaml:6", "app.yaml:7"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFilesThatCannotBeReadAreReportedOnce(t *testing.T) {
	for name, text := range map[string]string{
		"only comments": "# nothing\n", "UTF-16": "\xff\xfet\x00i\x00", "two documents": "title: a\n---\ntitle: b\n",
	} {
		_, err := read(t, tree(map[string]string{"app.yaml": text}), firstgen.Options{})
		if found := xpkg.Findings(err); len(found) != 1 || strings.Contains(found[0].Message, "0 YAML documents") {
			t.Errorf("%s: findings %v, want one", name, found)
		}
	}
}

func TestTheFormerNameOfAShortOverviewIsRead(t *testing.T) {
	pkg := mustRead(t, map[string]string{"resources/resource.yaml": "shortOverview: short\n"}, firstgen.Options{})
	if got := pkg.Resources[0].CRD.Annotations[firstgen.AnnotationResourceOverviewShort]; got != "short" ||
		len(pkg.Findings) > 0 {
		t.Errorf("short overview %q, findings %v", got, pkg.Findings)
	}
}

func TestALinkInPlaceOfAFileThatDefinesThePackageIsAnError(t *testing.T) {
	for _, name := range []string{"app.yaml", "install.yaml", "behavior.yaml"} {
		fsys := tree(nil)
		fsys[".registry/"+name] = link
		_, err := read(t, fsys, firstgen.Options{})
		if found := xpkg.Findings(err); len(found) == 0 || found[0].Code.Name != xpkg.ErrUnreadableFile.Name ||
			found[0].Severity != xpkg.Error {
			t.Errorf("%s: error %v, findings %v", name, err, found)
		}
	}
}

var link = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}

func TestNamesOfFilesAreInOneLine(t *testing.T) {
	_, err := read(t, tree(map[string]string{"resources/a\nb/crd.yaml": "{{"}), firstgen.Options{})
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), `a\nb/crd.yaml`) {
		t.Errorf("error %q", err)
	}
	pkg := mustRead(t, map[string]string{
		"resources/a\nb/thing.ui-schema.yaml": "a: 1", "resources/a\nb/ui-schema.yaml": "b: 1",
		"resources/a\nb/c.crd.yaml": crdText("b.example.org", "Thing", "v1"),
	}, firstgen.Options{})
	if len(pkg.Findings) != 1 || strings.Contains(pkg.Findings[0].String(), "\n") {
		t.Errorf("findings %q", pkg.Findings)
	}
}
