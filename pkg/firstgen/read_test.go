package firstgen_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

const (
	svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	png = "\x89PNG\r\n\x1a\n"
	jpg = "\xff\xd8\xff"
	gif = "GIF89a"
)

func crdText(group, kind string, versions ...string) string {
	plural := strings.ToLower(kind) + "s"
	s := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: " + plural + "." +
		group +
		"\n  labels: {controller-tools.k8s.io: \"1.0\"}\nspec:\n  group: " + group +
		"\n  scope: Namespaced\n  names: {kind: " + kind + ", plural: " + plural + ", singular: " + strings.ToLower(kind) +
		"}\n  versions:\n"
	for i, v := range versions {
		s += "  - name: " + v + "\n    served: true\n    storage: " + map[bool]string{true: "true", false: "false"}[i == 0] +
			"\n    schema: {openAPIV3Schema: {type: object}}\n"
	}
	return s
}

const betaCRD = `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  name: mytypes.samples.example.org
spec:
  group: samples.example.org
  names: {kind: Mytype, plural: mytypes}
  scope: Namespaced
  version: v1alpha1
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
`

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller}
spec:
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {labels: {app: controller}}
    spec:
      containers:
      - name: controller
      - name: helper
        image: acme/helper:v1
      - name: pinned
        image: registry.example.org/acme/other:v1
`

// tree returns a package with app.yaml and a CRD, and the given files below .registry. An empty text removes a file.
func tree(files map[string]string) fstest.MapFS {
	all := map[string]string{"app.yaml": "title: Sample\n", "resources/crd.yaml": crdText("a.example.org", "Thing", "v1")}
	maps.Copy(all, files)
	out := fstest.MapFS{}
	for name, text := range all {
		if text != "" {
			out[".registry/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return out
}

func mustRead(t *testing.T, files map[string]string, opts firstgen.Options) *firstgen.Package {
	t.Helper()
	pkg, err := read(t, tree(files), opts)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func TestAppIsReadWithEveryField(t *testing.T) {
	pkg := mustRead(t, map[string]string{"app.yaml": `
apiVersion: 0.1.0
version: 0.0.1
title: Sample
overviewShort: short
overview: long
readme: "# Sample"
maintainers: [{name: Jane, email: jane@example.org}]
owners: [{name: Joe, email: joe@example.org}]
company: Acme
category: Database
keywords: [a, b]
website: https://example.org
source: https://example.org/source
license: Apache-2.0
packageType: Provider
permissionScope: Cluster
dependsOn:
- crd: mytype.mygroup.example.org/v1alpha1
- crd: '*.yourstack.example.org/v1alpha1'
- crd: others.example.org
`}, firstgen.Options{Tag: "0.0.1"})
	want := firstgen.App{
		FormatVersion: "0.1.0", Version: "0.0.1", Title: "Sample", OverviewShort: "short", Overview: "long",
		Readme:   "# Sample",
		Category: "Database", Company: "Acme", Website: "https://example.org", Source: "https://example.org/source",
		License: "Apache-2.0", Keywords: []string{"a", "b"},
		Maintainers: []firstgen.Person{{Name: "Jane", Email: "jane@example.org"}},
		Owners:      []firstgen.Person{{Name: "Joe", Email: "joe@example.org"}},
		Type:        firstgen.TypeProvider, Scope: firstgen.ScopeCluster,
		DependsOn: []firstgen.CRDReference{
			{"mytype", "mygroup.example.org", "v1alpha1"}, {"*", "yourstack.example.org", "v1alpha1"},
			{"others", "example.org", ""},
		},
	}
	if diff := cmp.Diff(want, pkg.App); diff != "" {
		t.Errorf("app (-want +got):\n%s", diff)
	}
	if len(pkg.Findings) != 0 {
		t.Errorf("findings: %v", pkg.Findings)
	}
}

func TestMissingVersionIsTheTagOfTheImage(t *testing.T) {
	if got := mustRead(t, nil, firstgen.Options{Tag: "v1.2.3"}).App.Version; got != "v1.2.3" {
		t.Errorf("version %q", got)
	}
}

func TestInvalidPackagesAreRefusedWithACodeAndALine(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		tag   string
		code  errcode.Code
		file  string
		line  int
	}{
		"no app": {files: map[string]string{"app.yaml": ""}, code: firstgen.ErrNoApp, file: "app.yaml"},
		"two documents in app": {
			files: map[string]string{"app.yaml": "title: a\n---\ntitle: b\n"}, code: firstgen.ErrInvalidApp, file: "app.yaml",
		},
		"app is a list": {
			files: map[string]string{"app.yaml": "- a\n"}, code: firstgen.ErrInvalidApp, file: "app.yaml", line: 1,
		},
		"format of the future": {
			files: map[string]string{"app.yaml": "title: a\napiVersion: 2.0.0\n"}, code: firstgen.ErrInvalidApp,
			file: "app.yaml", line: 2,
		},
		"unknown scope": {
			files: map[string]string{"app.yaml": "permissionScope: Galaxy\n"}, code: firstgen.ErrInvalidApp, file: "app.yaml",
			line: 1,
		},
		"unknown type": {files: map[string]string{
			"app.yaml": "\npackageType: Toy\n",
		}, code: firstgen.ErrInvalidApp, file: "app.yaml", line: 2},
		"dependency on no CRD": {
			files: map[string]string{"app.yaml": "dependsOn:\n- crd: nodot\n"}, code: firstgen.ErrInvalidApp, file: "app.yaml",
			line: 2,
		},
		"another tag": {
			files: map[string]string{"app.yaml": "version: 0.1.0\n"}, tag: "0.2.0", code: firstgen.ErrVersionMismatch,
			file: "app.yaml", line: 1,
		},
		"install without kind": {
			files: map[string]string{"install.yaml": "a: b\n"}, code: firstgen.ErrInvalidInstall, file: "install.yaml", line: 1,
		},
		"install of a Pod": {
			files: map[string]string{"install.yaml": "apiVersion: v1\nkind: Pod\n"}, code: firstgen.ErrInvalidInstall,
			file: "install.yaml", line: 1,
		},
		"two Deployments": {
			files: map[string]string{"install.yaml": deployment + "---\n" + deployment}, code: firstgen.ErrInvalidInstall,
			file: "install.yaml",
		},
		"no containers": {
			files: map[string]string{"install.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"},
			code:  firstgen.ErrInvalidInstall, file: "install.yaml", line: 1,
		},
		"image of a shell": {files: map[string]string{"install.yaml": strings.Replace(
			deployment, "name: controller\n      - name: helper", "name: controller\n        image: $(id)\n      - name: helper",
			1,
		)}, code: firstgen.ErrInvalidInstall, file: "install.yaml", line: 11},
		"image with a scheme": {files: map[string]string{"install.yaml": strings.Replace(
			deployment, "name: controller\n      - name: helper",
			"name: controller\n        image: http://example.org/a:v1\n      - name: helper", 1,
		)}, code: firstgen.ErrInvalidInstall, file: "install.yaml", line: 11},
		"behavior without kind": {
			files: map[string]string{"behavior.yaml": "engine: {type: helm3}\n"}, code: firstgen.ErrInvalidBehavior,
			file: "behavior.yaml",
		},
		"no CRD, no controller": {
			files: map[string]string{"resources/crd.yaml": ""}, code: firstgen.ErrNoResources, file: "resources",
		},
		"other object": {
			files: map[string]string{"resources/crd.yaml": "apiVersion: v1\nkind: Secret\n"}, code: xpkg.ErrWrongKind,
			file: "resources/crd.yaml", line: 1,
		},
		"misnamed CRD": {files: map[string]string{
			"resources/crd.yaml": strings.Replace(crdText("a.example.org", "Thing", "v1"), "name: things.", "name: other.", 1),
		}, code: check.ErrCRDName, file: "resources/crd.yaml", line: 1},
		"damaged group": {
			files: map[string]string{"resources/group.yaml": "title: [\n"}, code: xpkg.ErrInvalidYAML,
			file: "resources/group.yaml",
		},
		"conflicting versions": {files: map[string]string{"resources/b.crd.yaml": strings.Replace(
			crdText("a.example.org", "Thing", "v1"), "type: object", "type: object, description: other", 1,
		)},
			code: xpkg.ErrDuplicateObject, file: "resources/crd.yaml"},
		"huge metadata": {
			files: map[string]string{"resources/resource.yaml": "readme: " + strings.Repeat("a", 300<<10) + "\n"},
			code:  check.ErrAnnotationsTooLarge, file: "resources/crd.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, tree(tc.files), firstgen.Options{Tag: tc.tag})
			i := slices.IndexFunc(xpkg.Findings(err), func(f xpkg.Finding) bool { return f.Code.Name == tc.code.Name })
			if i < 0 {
				t.Fatalf("error %v, want a finding %s", err, tc.code.Name)
			}
			if f := xpkg.Findings(err)[i]; f.File != tc.file && tc.code.Name != xpkg.ErrDuplicateObject.Name ||
				tc.line > 0 && f.Line != tc.line || f.Fix == "" {
				t.Errorf("finding at %s:%d with the fix %q, want %s:%d", f.File, f.Line, f.Fix, tc.file, tc.line)
			}
		})
	}
}

func TestALinkOutOfTheFolderIsNoPackage(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("../elsewhere", filepath.Join(dir, firstgen.Folder)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := firstgen.Find(root.FS()); !errors.Is(err, xpkg.ErrUnreadableFile) ||
		!strings.Contains(err.Error(), firstgen.Folder+" is a symbolic link") {
		t.Errorf("error %v", err)
	}
}

func TestFolderWithoutAPackageIsNotFound(t *testing.T) {
	if _, err := firstgen.Find(fstest.MapFS{"crossplane.yaml": {}}); !errors.Is(err, firstgen.ErrNoRegistryFolder) {
		t.Errorf("error %v", err)
	}
}

func TestMetadataAppliesByPosition(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"resources/crd.yaml":      "",
		"icon.png":                png,
		"icon.svg":                svg,
		"resources/db/group.yaml": "title: Databases\noverviewShort: group\n",
		"resources/db/icon.gif":   gif,
		"resources/db/sql/all.crd.yaml": crdText("db.example.org", "MySQL", "v1") + "---\n" +
			crdText("db.example.org", "Postgres", "v1"),
		"resources/db/sql/mysql.resource.yaml":      "title: by file name\n",
		"resources/db/sql/other.resource.yaml":      "id: postgres\ntitle: by id\n",
		"resources/db/sql/icon.jpg":                 jpg,
		"resources/db/sql/mysql.icon.png":           png,
		"resources/db/sql/mysql.icon.svg":           svg,
		"resources/db/sql/ui-schema.yaml":           "version: 0.5\n",
		"resources/db/sql/mysql.v1.ui-schema.yaml":  "version: 0.6\n---\nmore: true\n",
		"resources/cache/redis/redis.v1.crd.yaml":   crdText("cache.example.org", "Redis", "v1"),
		"resources/cache/unrelated.ui-schema.yaml":  "version: 1\n",
		"resources/cache/redis/deep/resource.yaml":  "title: applies to nothing above\n",
		"resources/cache/redis/README.md":           "ignored",
		"resources/cache/redis/deep/notanicon.icon": "ignored",
	}, firstgen.Options{})
	got := map[string]map[string]string{}
	for _, r := range pkg.Resources {
		got[r.CRD.Spec.Names.Kind] = r.CRD.Annotations
	}
	uri := func(mediaType, data string) string {
		return firstgen.Icon{MediaType: mediaType, Data: []byte(data)}.DataURI()
	}
	want := map[string]map[string]string{
		"MySQL": {
			firstgen.AnnotationPackageTitle: "Sample", firstgen.AnnotationGroupTitle: "Databases",
			firstgen.AnnotationGroupOverviewShort: "group",
			firstgen.AnnotationResourceTitle:      "by file name", firstgen.AnnotationIcon: uri("image/svg+xml", svg),
			firstgen.AnnotationUISchema: "version: 0.6\n---\nmore: true\n",
		},
		"Postgres": {
			firstgen.AnnotationPackageTitle: "Sample", firstgen.AnnotationGroupTitle: "Databases",
			firstgen.AnnotationGroupOverviewShort: "group",
			firstgen.AnnotationResourceTitle:      "by id", firstgen.AnnotationIcon: uri("image/jpeg", jpg),
			firstgen.AnnotationUISchema: "version: 0.5\n",
		},
		"Redis": {firstgen.AnnotationPackageTitle: "Sample"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if len(pkg.Icons) != 2 || pkg.Icons[0].MediaType != "image/svg+xml" {
		t.Errorf("icons %v, want svg before png", pkg.Icons)
	}
	var unused []string
	for _, f := range pkg.Findings {
		if f.Code.Name == firstgen.ErrUnusedMetadata.Name {
			unused = append(unused, f.File)
		}
	}
	if diff := cmp.Diff(
		[]string{"resources/cache/redis/deep/resource.yaml", "resources/cache/unrelated.ui-schema.yaml"}, unused,
	); diff != "" {
		t.Errorf("unused metadata (-want +got):\n%s", diff)
	}
}

func TestAnnotationsOfACRDAreKeptUnlessAFileReplacesThem(t *testing.T) {
	text := strings.Replace(
		crdText("a.example.org", "Thing", "v1"), "metadata:\n",
		"metadata:\n  annotations: {packages.crossplane.io/resource-title: built, packages.crossplane.io/resource-readme: kept}\n",
		1,
	)
	pkg := mustRead(
		t, map[string]string{"resources/crd.yaml": text, "resources/resource.yaml": "title: replaced\n"}, firstgen.Options{},
	)
	crd := pkg.Resources[0].CRD
	if crd.Annotations[firstgen.AnnotationResourceTitle] != "replaced" ||
		crd.Annotations[firstgen.AnnotationResourceReadme] != "kept" {
		t.Errorf("annotations %v", crd.Annotations)
	}
	if crd.Labels["controller-tools.k8s.io"] != "1.0" || crd.Labels[firstgen.LabelManagedBy] != firstgen.ManagedBy {
		t.Errorf("labels %v", crd.Labels)
	}
}

func TestCRDsOfVersion1Beta1AreConverted(t *testing.T) {
	pkg := mustRead(t, map[string]string{"resources/crd.yaml": betaCRD}, firstgen.Options{})
	crd := pkg.Resources[0].CRD
	if crd.APIVersion != "apiextensions.k8s.io/v1" || len(crd.Spec.Versions) != 1 || !crd.Spec.Versions[0].Storage ||
		len(crd.Status.Conditions) != 0 {
		t.Errorf("CRD %+v", crd)
	}
}

func TestVersionsInSeveralFilesBecomeOneCRD(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"resources/crd.yaml":                           "",
		"resources/g/mysql/v1alpha1/v1alpha1.crd.yaml": crdText("db.example.org", "MySQL", "v1alpha1"),
		"resources/g/mysql/v1beta1/v1beta1.crd.yaml":   crdText("db.example.org", "MySQL", "v1beta1"),
	}, firstgen.Options{})
	if len(pkg.Resources) != 1 {
		t.Fatalf("%d resources", len(pkg.Resources))
	}
	var got []string
	for _, v := range pkg.Resources[0].CRD.Spec.Versions {
		got = append(got, v.Name)
		if v.Storage != (v.Name == "v1beta1") {
			t.Errorf("version %s: storage %v", v.Name, v.Storage)
		}
	}
	if diff := cmp.Diff([]string{"v1beta1", "v1alpha1"}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestDeploymentTakesTheSettingsOfTheInstallObject(t *testing.T) {
	pkg := mustRead(t, map[string]string{"install.yaml": deployment}, firstgen.Options{})
	secret := corev1.LocalObjectReference{Name: "registry"}
	d := pkg.Install.Deployment(firstgen.InstallOptions{
		Image: "private.example.org/acme/pkg:v1", Source: "private.example.org", PullPolicy: corev1.PullAlways,
		PullSecrets: []corev1.LocalObjectReference{secret, secret},
	})
	var images []string
	for _, c := range d.Spec.Template.Spec.Containers {
		images = append(images, c.Image)
		if c.ImagePullPolicy != corev1.PullAlways {
			t.Errorf("pull policy of %s: %s", c.Name, c.ImagePullPolicy)
		}
	}
	want := []string{
		"private.example.org/acme/pkg:v1", "private.example.org/acme/helper:v1", "registry.example.org/acme/other:v1",
	}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.LocalObjectReference{secret}, d.Spec.Template.Spec.ImagePullSecrets); diff != "" {
		t.Errorf("pull secrets (-want +got):\n%s", diff)
	}
	if again := pkg.Install.Deployment(firstgen.InstallOptions{}); again.Spec.Template.Spec.Containers[0].Image != "" {
		t.Error("a call of Deployment changed the package")
	}
}

func TestPermissionsCoverOwnedAndRequiredCRDs(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"app.yaml": "title: a\ndependsOn: [{crd: '*.core.example.org/v1'}, {crd: tables.db.example.org/v1}]\n",
	}, firstgen.Options{})
	got := map[string][]string{}
	for _, r := range pkg.Permissions() {
		got[r.APIGroups[0]] = r.Resources
	}
	want := map[string][]string{
		"":                 {"configmaps", "events", "secrets"},
		"a.example.org":    {"things", "things/status", "things/finalizers"},
		"core.example.org": {"*"},
		"db.example.org":   {"tables", "tables/status"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestUnusableIconsAreWarnings(t *testing.T) {
	pkg := mustRead(t, map[string]string{"icon.svg": "<script/>", "icon.png": png +
		strings.Repeat("a", firstgen.MaxIconBytes), "icon.gif": "text"}, firstgen.Options{})
	if len(pkg.Icons) != 0 || len(pkg.Findings) != 3 {
		t.Errorf("icons %v, findings %v", pkg.Icons, pkg.Findings)
	}
}

func TestLimitsBoundTheInput(t *testing.T) {
	many := map[string]string{}
	for _, n := range []string{"a", "b", "c", "d"} {
		many["resources/"+n+".crd.yaml"] = crdText(n+".example.org", "Thing", "v1")
	}
	for name, limits := range map[string]xpkg.Limits{"bytes": {StreamBytes: 600}, "files": {Documents: 3}, "depth": {
		Depth: 2,
	}} {
		files := maps.Clone(many)
		if name == "depth" {
			files["resources/a/b/c/d/e/f/crd.yaml"] = crdText("z.example.org", "Thing", "v1")
		}
		_, err := read(t, tree(files), firstgen.Options{Limits: limits})
		var e *errcode.Error
		if !errors.As(err, &e) || e.Code.Class.Name != errcode.Limit.Name {
			t.Errorf("%s: error %v, want class Limit", name, err)
		}
	}
}

func TestSymbolicLinksAndSpecialFilesAreWarnings(t *testing.T) {
	fsys := tree(nil)
	fsys[".registry/resources/link.crd.yaml"] = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
	fsys[".registry/resources/pipe.crd.yaml"] = &fstest.MapFile{Mode: fs.ModeNamedPipe}
	if pkg, err := read(t, fsys, firstgen.Options{}); err != nil || len(pkg.Resources) != 1 || len(pkg.Findings) != 2 {
		t.Errorf("package %v, error %v", pkg, err)
	}
}

// A linked folder is reported, also if it leads out of the package: its files are silently missing otherwise. Links to
// other files do not concern the package.
func TestLinkedFoldersAreWarnings(t *testing.T) {
	for _, name := range []string{"resources", "resources/acme", "icons", "resources/v1.2"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := tree(nil)
			for file, content := range files {
				write(t, filepath.Join(dir, file), content.Data)
			}
			write(t, filepath.Join(dir, "elsewhere", "group.yaml"), []byte("title: Acme\n"))
			if err := os.RemoveAll(filepath.Join(dir, ".registry", name)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, ".registry", name)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("app.yaml", filepath.Join(dir, ".registry", "README.md")); err != nil {
				t.Fatal(err)
			}
			pkg, err := read(t, os.DirFS(dir), firstgen.Options{})
			var found []xpkg.Finding
			if err != nil {
				found = xpkg.Findings(err)
			} else {
				found = pkg.Findings
			}
			found = slices.DeleteFunc(found, func(f xpkg.Finding) bool { return f.Code.Name != xpkg.ErrUnreadableFile.Name })
			if len(found) != 1 || found[0].File != name {
				t.Errorf("error %v, findings %+v", err, found)
			}
		})
	}
}

// write writes a file and the folders that contain it.
func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCRDReferences(t *testing.T) {
	for s, ok := range map[string]bool{
		"things.example.org/v1": true, "things.example.org": true, "*.example.org/v1": true, "things": false, "": false,
		"Things.example.org": false, "things./v1": false, "things.example.org/": false, "*": false, "*.*": false,
		"a.b/c/d": false,
	} {
		r, got := firstgen.ParseCRDReference(s)
		if got != ok || ok && r.String() != s {
			t.Errorf("%q: %v (%v), want %v", s, got, r, ok)
		}
	}
	r, _ := firstgen.ParseCRDReference("*.example.org/v1")
	if !r.Matches("things", "example.org", "v1", "v2") || r.Matches("things", "example.org", "v2") ||
		r.Matches("things", "example.com", "v1") {
		t.Error("Matches compares group and version")
	}
}

// A file that is not read because of its name is reported with the name under which it would be.
func TestMisnamedFilesAreReported(t *testing.T) {
	files := map[string]string{
		"resources/crd.yaml": crdText("a.example.org", "Thing", "v1"), "resources/ui-schema.yaml": "version: 0.5\n",
		"Install.yaml": "x", "icon.jpeg": "x", "resources/Team/MySQL.crd.yml": "x", "resources/db/group.yml": "x",
		"resources/db/MySQL.Resource.yaml": "x",
		"resources/mysql.icon.PNG":         "x", "resources/icon.webp": "x", "pg.crd.yaml": "x", "ui-schema.yml": "x",
		"resources/crd.yml": "x",
		"notes.yml":         "x", "config.yaml": "x", "resources/kustomization.yml": "x", "resources/photo.jpeg": "x",
	}
	want := []string{
		"Install.yaml: the file is not read: rename it to install.yaml",
		"icon.jpeg: the file is not read: rename it to icon.jpg",
		"pg.crd.yaml: the file is not read: rename it to resources/pg.crd.yaml",
		"resources/Team/MySQL.crd.yml: the file is not read: rename it to resources/Team/MySQL.crd.yaml",
		"resources/crd.yml: the file is not read: resources/crd.yaml is read instead",
		"resources/db/MySQL.Resource.yaml: the file is not read: rename it to resources/db/MySQL.resource.yaml",
		"resources/db/group.yml: the file is not read: rename it to resources/db/group.yaml",
		"resources/icon.webp: the file is not read: icons have the format svg, png, jpg or gif",
		"resources/mysql.icon.PNG: the file is not read: rename it to resources/mysql.icon.png",
		"ui-schema.yml: the file is not read: rename it to ui-schema.yaml",
	}
	contents := map[string][]byte{}
	for name, text := range tree(files) {
		contents[strings.TrimPrefix(name, ".registry/")] = text.Data
	}
	fromFiles, err := firstgen.ReadFiles(contents, firstgen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, pkg := range map[string]*firstgen.Package{
		"folder": mustRead(t, files, firstgen.Options{}), "image": fromFiles,
	} {
		var got []string
		for _, f := range pkg.Findings {
			if f.Code.Name == firstgen.ErrMisnamedFile.Name {
				got = append(got, f.File+": "+f.Message)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: misnamed files (-want +got):\n%s", name, diff)
		}
	}
}
