package firstgen_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/firstgen"
)

const program = `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller}
spec:
  replicas: 2
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {labels: {app: controller}}
    spec:
      containers:
      - name: controller
        command: [/manager]
        args: [--sync]
        workingDir: /work
        env:
        - {name: MODE, value: fast}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: ID, value: id-$(POD_NAME)}
        readinessProbe: {httpGet: {path: /ready, port: 80}}
`

func TestLiteralPartsOfTheProgramMoveIntoTheImage(t *testing.T) {
	pkg := mustRead(
		t, map[string]string{"app.yaml": "title: A\npermissionScope: Cluster\n", "install.yaml": program}, firstgen.Options{},
	)
	c, read := convert(t, pkg, firstgen.ConvertOptions{Bake: true})
	p := c.Process
	if p == nil || !slices.Equal(p.Command, []string{"/manager"}) || !slices.Equal(p.Args, []string{"--sync"}) ||
		p.WorkingDir != "/work" || !slices.Equal(p.Env, []string{"MODE=fast"}) {
		t.Fatalf("process %+v", p)
	}
	d := defaultsOf(t, read)
	if len(d.Command)+len(d.Args) > 0 || d.WorkingDir != "" || len(d.Env) != 2 || d.ReadinessProbe == nil ||
		*d.Replicas != 2 {
		t.Errorf("defaults %+v", d)
	}
	config, err := c.RuntimeConfig("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kind: DeploymentRuntimeConfig", "name: a", "replicas: 2", "fieldPath: metadata.name", "id-$(POD_NAME)",
		"path: /ready", "name: package-runtime",
	} {
		if !strings.Contains(string(config), want) {
			t.Errorf("%q is missing in\n%s", want, config)
		}
	}
	if strings.Contains(string(config), "--sync") {
		t.Errorf("the arguments are in the image and in\n%s", config)
	}
}

func TestArgumentsWithVariablesStayInTheConfiguration(t *testing.T) {
	text := strings.Replace(program, "[--sync]", "[--name=$(POD_NAME)]", 1)
	c, _ := convert(t, mustRead(t, map[string]string{"install.yaml": text}, firstgen.Options{}), firstgen.ConvertOptions{
		Bake: true,
	})
	if len(c.Process.Args)+len(c.Process.Command) > 0 || !slices.Equal(c.Runtime.Args, []string{"--name=$(POD_NAME)"}) {
		t.Errorf("process %+v, defaults %+v", c.Process, c.Runtime)
	}
}

func TestSeparateImageIsNotBaked(t *testing.T) {
	text := strings.Replace(program, "- name: controller", "- name: controller\n        image: acme/controller:v1", 1)
	c, read := convert(
		t, mustRead(t, map[string]string{"install.yaml": text}, firstgen.Options{}), firstgen.ConvertOptions{Bake: true},
	)
	if c.Process != nil || read.Meta.ControllerImage != "acme/controller:v1" {
		t.Errorf("process %+v, image %q", c.Process, read.Meta.ControllerImage)
	}
	if config, err := c.RuntimeConfig("a"); err != nil || !strings.Contains(string(config), "image: acme/controller:v1") {
		t.Errorf("%s, %v", config, err)
	}
}

func TestSimpleProgramNeedsNoRuntimeConfig(t *testing.T) {
	text := program[:strings.Index(program, "        - {name: POD_NAME")]
	text = strings.Replace(text, "  replicas: 2\n", "", 1)
	c, _ := convert(t, mustRead(t, map[string]string{"install.yaml": text}, firstgen.Options{}), firstgen.ConvertOptions{
		Bake: true,
	})
	if config, err := c.RuntimeConfig("a"); config != nil || err != nil {
		t.Errorf("%s, %v", config, err)
	}
}

func TestDocumentationHasReadmesIconsAndUISchemas(t *testing.T) {
	pkg := mustRead(t, map[string]string{
		"app.yaml": "title: A\nreadme: '# A'\n", "icon.svg": svg, "icon.png": png, "ui-schema.yaml": "version: 0.5\n",
		"resources/thing.resource.yaml": "id: Thing\ntitle: A thing\nreadme: About things.\n",
		"resources/thing.icon.png":      png, "resources/thing.ui-schema.yaml": "version: 0.5\n",
	}, firstgen.Options{})
	var paths []string
	for _, f := range pkg.Documentation() {
		paths = append(paths, f.Path)
		if !strings.HasPrefix(f.Path, f.Layer+"/") || len(f.Data) == 0 {
			t.Errorf("file %+v", f)
		}
	}
	want := []string{
		"readme/readme.md", "icons/icon.svg", "icons/things.a.example.org.png", "docs/things.a.example.org.md",
		"ui-schemas/package.yaml", "ui-schemas/things.a.example.org.yaml",
	}
	if !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
}

func TestDocumentationHasTheAnnotationsOfABuild(t *testing.T) {
	text := strings.Replace(crdText("a.example.org", "Thing", "v1"),
		"metadata:\n", "metadata:\n  annotations:\n    "+firstgen.AnnotationIcon+": "+
			firstgen.Icon{MediaType: "image/svg+xml", Data: []byte(svg)}.DataURI()+"\n    "+firstgen.AnnotationUISchema+
			": 'version: 0.5'\n    "+
			firstgen.AnnotationResourceReadme+": About things.\n    "+firstgen.AnnotationResourceTitle+": A thing\n", 1)
	got := map[string]string{}
	for _, f := range mustRead(t, map[string]string{"resources/crd.yaml": text}, firstgen.Options{}).Documentation() {
		got[f.Path] = string(f.Data)
	}
	want := map[string]string{
		"icons/things.a.example.org.svg": svg, "docs/things.a.example.org.md": "# A thing\n\nAbout things.\n",
		"ui-schemas/things.a.example.org.yaml": "version: 0.5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	broken := strings.Replace(text, "image/svg+xml;base64,", "text/html;base64,", 1)
	for _, f := range mustRead(t, map[string]string{"resources/crd.yaml": broken}, firstgen.Options{}).Documentation() {
		if f.Layer == "icons" {
			t.Errorf("%s is not an icon", f.Path)
		}
	}
}
