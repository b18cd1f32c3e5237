package project

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// metaOf returns the metadata that a package has.
func metaOf(t *testing.T, doc xpkg.Document) xpkg.Meta {
	t.Helper()
	meta, err := xpkg.ReadMetaDocument(doc, xpkg.ReadOptions{Policy: xpkg.PolicyBuild()})
	if err != nil {
		t.Fatalf("%v\n%s", err, doc.Raw)
	}
	return meta
}

func TestProjectOfEachVersion(t *testing.T) {
	type want struct {
		Name, Repository string
		Paths            Paths
		Architectures    []string
		Declared         []Function
		Annotations      map[string]string
		Crossplane       string
		DependsOn        []dependency.Dependency
	}
	both := []string{"amd64", "arm64"}
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		in   string
		want want
	}{
		"upbound v1alpha1": {`
apiVersion: meta.dev.upbound.io/v1alpha1
kind: Project
metadata: {name: fleets, annotations: {a: b, meta.crossplane.io/license: MIT}}
spec:
  repository: xpkg.upbound.io/acme/fleets
  license: Apache-2.0
  readme: |
    # Fleets
  additionalMetadata: {meta.upbound.io/tier: gold}
  dependsOn:
  - {function: x/f, version: ">=v0.1.0"}
  - {apiVersion: pkg.upbound.io/v1beta1, kind: AddOn, package: x/a, version: 1.2.3}
  apiDependencies:
  - {type: k8s, k8s: {version: v1.33.0}}
  - {type: crd, git: {repository: https://example.org/x, ref: main, path: crds}}
  imageConfig:
  - matchImages: [{type: Prefix, prefix: a}]
    rewriteImage: {prefix: b}
`, want{
			Name: "fleets", Repository: "xpkg.upbound.io/acme/fleets", Architectures: both,
			Paths: Paths{APIs: "apis", Functions: "functions", Examples: "examples", Tests: "tests"},
			Annotations: map[string]string{
				"a": "b", xpkg.AnnotationLicense: "Apache-2.0", xpkg.AnnotationReadme: "# Fleets\n",
				"meta.upbound.io/tier": "gold",
			},
			DependsOn: []dependency.Dependency{
				{APIVersion: "pkg.crossplane.io/v1", Kind: "Function", Package: "x/f", Constraint: ">=v0.1.0"},
				{APIVersion: "pkg.upbound.io/v1beta1", Kind: "AddOn", Package: "x/a", Constraint: "1.2.3"},
			},
		}},
		"upbound v2alpha1": {`
apiVersion: meta.dev.upbound.io/v2alpha1
kind: Project
metadata: {name: fleets}
spec:
  repository: xpkg.upbound.io/acme/fleets
  maintainer: Acme
  architectures: [arm64]
  paths: {apis: ./api/, operations: ops, examples: docs/examples}
  dependsOn:
  - {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: x/p, version: "` + digest + `"}
`, want{
			Name: "fleets", Repository: "xpkg.upbound.io/acme/fleets", Architectures: []string{"arm64"},
			Paths: Paths{
				APIs: "api", Functions: "functions", Examples: "docs/examples", Tests: "tests", Operations: "ops",
			},
			Annotations: map[string]string{xpkg.AnnotationMaintainer: "Acme"}, Crossplane: ">=v2.0.0-rc.0",
			DependsOn: []dependency.Dependency{
				{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Package: "x/p", Constraint: digest},
			},
		}},
		"crossplane v1alpha1": {`
apiVersion: dev.crossplane.io/v1alpha1
kind: Project
metadata: {name: fleets}
spec:
  repository: ghcr.io/acme/fleets
  crossplane: {version: ">=v2.3.0"}
  schemas: {languages: [go, typescript]}
  functions:
  - {source: Directory, directory: {name: compose}}
  - {source: Tarball, tarball: {name: draw, pathPrefix: _output/draw}}
  dependencies:
  - type: xpkg
    xpkg: {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: x/schemas, version: v1.0.0, apiOnly: true}
  - {type: k8s, k8s: {version: v1.33.0}}
  - {type: crd, http: {url: https://example.org/crd.yaml}}
  - type: xpkg
    xpkg: {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: x/p, version: v1.0.0}
  imageConfigs:
  - apiVersion: pkg.crossplane.io/v1beta1
    kind: ImageConfig
    metadata: {name: mirror}
    spec: {matchImages: [{prefix: a}], rewriteImage: {prefix: b}, registry: {authentication: {}}}
`, want{
			Name: "fleets", Repository: "ghcr.io/acme/fleets", Architectures: both,
			Paths: Paths{
				APIs: "apis", Functions: "functions", Examples: "examples", Tests: "tests", Operations: "operations",
				Schemas: "schemas",
			},
			Crossplane: ">=v2.3.0",
			Declared: []Function{
				{Name: "compose", Folder: "functions/compose"}, {Name: "draw", Tarball: "_output/draw"},
			},
			DependsOn: []dependency.Dependency{
				{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Package: "x/p", Constraint: "v1.0.0"},
			},
		}},
	} {
		p, findings := Read([]byte(c.in), "p.yaml", xpkg.Limits{})
		if len(findings) > 0 {
			t.Errorf("%s: %v", name, findings)
			continue
		}
		meta := metaOf(t, p.Meta)
		got := want{
			p.Name, p.Repository, p.Paths, p.Architectures, p.Declared, meta.Annotations, meta.Crossplane, meta.DependsOn,
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if meta.Kind != xpkg.Configuration || meta.Name != p.Name || meta.APIVersion != "meta.pkg.crossplane.io/v1" {
			t.Errorf("%s: %+v", name, meta)
		}
	}
}

// TestMalformedProjects checks that each problem has the line of the field, or that of its parent if the field is missing.
func TestMalformedProjects(t *testing.T) {
	upbound := func(spec string) string {
		return "apiVersion: meta.dev.upbound.io/v1alpha1\nkind: Project\nmetadata:\n  name: p\nspec:\n  repository: x.io/p\n" + spec
	}
	crossplane := func(spec string) string {
		return "apiVersion: dev.crossplane.io/v1alpha1\nkind: Project\nmetadata:\n  name: p\nspec:\n  repository: x.io/p\n" + spec
	}
	xpkgOf := func(fields string) string {
		return crossplane("  dependencies:\n  - type: xpkg\n    xpkg:\n" + fields)
	}
	const valid = "      apiVersion: pkg.crossplane.io/v1\n      kind: Provider\n      package: x.io/q\n"
	for name, c := range map[string]struct{ in, want string }{
		"nothing":        {"", "p.yaml error MalformedMeta the file has 0 documents; a Project is one"},
		"two documents":  {upbound("---\na: b\n"), "p.yaml error MalformedMeta the file has 2 documents; a Project is one"},
		"no YAML":        {"a: b: c\n", "p.yaml:1 error InvalidYAML"},
		"a duplicate":    {upbound("  source: a\n  source: b\n"), "p.yaml:8 error DuplicateKey"},
		"a list":         {"- a\n", `p.yaml:1 error UnsupportedMeta "" of "" is no known Project`},
		"wrong metadata": {"apiVersion: meta.dev.upbound.io/v1alpha1\nkind: Project\nmetadata: []\nspec:\n  repository: x\n", "p.yaml:3 error MalformedMeta metadata: a mapping is expected, not a list"},
		"another version": {
			strings.Replace(upbound(""), "v1alpha1", "v3", 1),
			`p.yaml:1 error UnsupportedMeta "Project" of "meta.dev.upbound.io/v3" is no known Project; the versions are `,
		},
		"another kind": {strings.Replace(upbound(""), "kind: Project", "kind: Test", 1), `p.yaml:1 error UnsupportedMeta "Test"`},
		"no spec":      {"apiVersion: dev.crossplane.io/v1alpha1\nkind: Project\nmetadata: {name: p}\n", "p.yaml:1 error MissingRepository the Project has no spec.repository"},
		"no repository": {
			strings.Replace(upbound(""), "  repository: x.io/p\n", "  source: x\n", 1),
			"p.yaml:5 error MissingRepository the Project has no spec.repository",
		},
		"an unknown field": {
			upbound("  maintainr: a\n"), `p.yaml:7 error UnknownMetaField unknown field "spec.maintainr", did you mean "maintainer"`,
		},
		"a field of the other group": {
			crossplane("  dependsOn:\n  - {function: x, version: v1}\n"),
			`p.yaml:7 error UnknownMetaField unknown field "spec.dependsOn", did you mean "dependencies"`,
		},
		"operations in v1alpha1": {
			upbound("  paths:\n    apis: a\n    operations: b\n"), `p.yaml:9 error UnknownMetaField unknown field "spec.paths.operations"`,
		},
		"a wrong type in a list": {
			upbound("  dependsOn:\n  - provider: x\n    version: v1\n  - provider: z\n    version: 1\n"),
			"p.yaml:11 error MalformedMeta spec.dependsOn[1].version: a string is expected, not an integer",
		},
		"a wrong type of a list": {
			crossplane("  architectures: amd64\n"), "p.yaml:7 error MalformedMeta spec.architectures: a list is expected, not a string",
		},
		"no architectures": {crossplane("  architectures: []\n"), "p.yaml:7 error MalformedMeta spec.architectures is empty"},
		"a wrong constraint of Crossplane": {
			upbound("  crossplane:\n    version: new\n"), "p.yaml:8 error InvalidConstraint spec.crossplane.version: ",
		},
		"an absolute path": {
			upbound("  paths:\n    apis: /apis\n"), `p.yaml:8 error MalformedMeta spec.paths.apis is "/apis", which is not a path inside`,
		},
		"a path outside": {
			crossplane("  paths:\n    schemas: a/../../b\n"), `p.yaml:8 error MalformedMeta spec.paths.schemas is "a/../../b"`,
		},
		"a foreign key": {
			upbound("  additionalMetadata:\n    tier: gold\n"), "p.yaml:8 error MalformedMeta spec.additionalMetadata[tier]: the key does not start",
		},
		"two sources of schemas": {
			upbound("  apiDependencies:\n  - type: crd\n    http: {url: x}\n    git: {repository: z}\n"),
			"p.yaml:8 error MalformedMeta spec.apiDependencies[0] needs exactly one of git, http and k8s",
		},
		"no source":          {crossplane("  dependencies:\n  - type: xpkg\n"), "p.yaml:8 error MalformedMeta spec.dependencies[0] needs exactly one"},
		"an unknown type":    {crossplane("  dependencies:\n  - type: helm\n    http: {url: x}\n"), `p.yaml:8 error MalformedMeta spec.dependencies[0].type is "helm"`},
		"a package as crd":   {strings.Replace(xpkgOf(valid), "type: xpkg", "type: crd", 1), "p.yaml:8 error MalformedMeta spec.dependencies[0] has the type crd"},
		"no version":         {xpkgOf(valid), "p.yaml:9 error MalformedMeta spec.dependencies[0].xpkg has no version"},
		"a wrong constraint": {xpkgOf(valid + "      version: new\n"), "p.yaml:13 error InvalidConstraint spec.dependencies[0].xpkg.version: "},
		"credentials": {
			xpkgOf(strings.Replace(valid, "x.io/q", "https://u:secret@x.io/q", 1) + "      version: v1\n"),
			"p.yaml:12 error MalformedMeta spec.dependencies[0].xpkg.package is ",
		},
		"a function without source": {
			crossplane("  functions:\n  - directory: {name: f}\n"), "p.yaml:8 error MalformedMeta spec.functions[0] needs the source",
		},
		"a function without images": {
			crossplane("  functions:\n  - source: Tarball\n    tarball: {name: f}\n"), "p.yaml:9 error MalformedMeta spec.functions[0].tarball needs",
		},
		"a function twice": {
			crossplane("  functions:\n  - {source: Directory, directory: {name: f}}\n  - {source: Directory, directory: {name: f}}\n"),
			`p.yaml:9 error MalformedMeta spec.functions[1]: the name "f" is already used`,
		},
		"a function outside": {
			crossplane("  functions:\n  - {source: Directory, directory: {name: ../f}}\n"), `p.yaml:8 error MalformedMeta spec.functions[0]: the name "../f"`,
		},
	} {
		_, findings := Read([]byte(c.in), "p.yaml", xpkg.Limits{})
		if len(findings) != 1 {
			t.Errorf("%s: %d findings: %v", name, len(findings), findings)
			continue
		}
		f := findings[0]
		if got := fmt.Sprintf("%s %s %s %s", f.Place(), f.Severity, f.Code.Name, f.Message); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if strings.Contains(f.Message, "secret") {
			t.Errorf("%s: the message has a password", name)
		}
	}
}

const lines = `# A comment.
apiVersion: dev.crossplane.io/v1alpha1
kind: Project
spec:
  repository: x.io/p
  readme: |
    one
    two
  license: none
  dependencies:
  - type: k8s
    k8s: {version: v1.33.0}
  - type: xpkg
    xpkg:
      kind: Provider
      apiVersion: pkg.crossplane.io/v1
      version: v1.0.0
      package: x.io/q
metadata:
  name: p
  labels:
    a.b/c: d
`

// Findings about the metadata, whose lines are in another order, name the lines of the Project.
func TestLinesOfTheMetadataAreThoseOfTheProject(t *testing.T) {
	p, findings := Read([]byte("---\n"+lines), "p.yaml", xpkg.Limits{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	source := strings.Split("---\n"+lines, "\n")
	for path, want := range map[string]string{
		"metadata.annotations[" + xpkg.AnnotationLicense + "]": "  license: none",
		"metadata.annotations[" + xpkg.AnnotationReadme + "]":  "  readme: |",
		"metadata.labels[a.b/c]":                               "    a.b/c: d",
		"metadata.name":                                        "  name: p",
		"metadata":                                             "metadata:",
		"spec.dependsOn[0].version":                            "      version: v1.0.0",
		"spec.dependsOn[0].package":                            "      package: x.io/q",
		"spec.crossplane.version":                              "spec:",
		"":                                                     "apiVersion: dev.crossplane.io/v1alpha1",
	} {
		f := p.Meta.Finding(xpkg.ErrMalformedMeta, p.Meta.FieldLine(path), "x")
		if f.File != "p.yaml" || source[f.Line-1] != want {
			t.Errorf("%s: %s:%d is %q, want %q", path, f.File, f.Line, source[f.Line-1], want)
		}
	}
}

func files(of map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range of {
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return out
}

func object(apiVersion, kind, name string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", apiVersion, kind, name)
}

const project = "apiVersion: meta.dev.upbound.io/v2alpha1\nkind: Project\nmetadata: {name: p}\nspec:\n  repository: x.io/p\n"

func TestPackageOfAProject(t *testing.T) {
	const compositions, operations = "apiextensions.crossplane.io/v1", "ops.crossplane.io/v1alpha1"
	all := map[string]string{
		"apis/a/definition.yaml":  object("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "as.x.io"),
		"apis/a/composition.yaml": object(compositions, "Composition", "a") + "---\n" + object("v1", "Secret", "secret"),
		"apis/mrap.yml":           object("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", "m"),
		"apis/operation.yaml":     object(operations, "Operation", "misplaced"),
		"apis/values.yaml":        "a: b\n",
		"apis/readme.md":          "no",
		"operations/cron.yaml":    object(operations, "CronOperation", "c"),
		"operations/x.yaml":       object(compositions, "Composition", "misplaced"),
		"examples/a.yaml":         object("x.io/v1", "A", "example"),
		"tests/a.yaml":            object(compositions, "Composition", "test"),
		"functions/f/x.yaml":      object(compositions, "Composition", "function"),
		"_output/x.yaml":          object(compositions, "Composition", "output"),
		"other.yaml":              object(compositions, "Composition", "other"),
		"crossplane.yaml":         object("meta.pkg.crossplane.io/v1", "Configuration", "old"),
	}
	for name, c := range map[string]struct {
		spec            string
		objects, errors []string
		examples        int
	}{
		"by default": {"", []string{"a", "as.x.io", "m", "c"}, []string{
			"apis/a/composition.yaml:5 NotPackaged", "apis/operation.yaml:1 NotPackaged", "apis/values.yaml:1 NotPackaged",
			"operations/x.yaml:1 NotPackaged",
		}, 1},
		"everywhere": {"  paths: {apis: ., examples: none}\n", []string{"a", "as.x.io", "m", "example", "other", "c"}, []string{
			"operations/x.yaml:1 NotPackaged",
		}, 0},
		"one folder for both": {
			"  paths: {operations: apis}\n", []string{"a", "as.x.io", "m", "misplaced"},
			[]string{"apis/a/composition.yaml:5 NotPackaged", "apis/values.yaml:1 NotPackaged"}, 1,
		},
		"no folder": {"  paths: {apis: missing}\n", []string{"c"}, []string{
			"operations/x.yaml:1 NotPackaged", "upbound.yaml:6 MalformedMeta",
		}, 1},
	} {
		all["upbound.yaml"] = project + c.spec
		if name == "everywhere" {
			all["examples/a.yaml"] = object(compositions, "Composition", "example")
		} else {
			all["examples/a.yaml"] = object("x.io/v1", "A", "example")
		}
		fsys := files(all)
		p, layout, err := Open(fsys, Find(fsys, nil), xpkg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		folder, err := xpkg.ReadFolder(fsys, xpkg.FolderOptions{ExamplesRoot: p.Paths.Examples, Layout: layout})
		if err != nil {
			t.Fatal(err)
		}
		pkg, findings := folder.Inspect(xpkg.ReadOptions{Policy: xpkg.PolicyBuild()})
		var objects, problems []string
		for _, o := range pkg.Objects {
			objects = append(objects, o.Name)
		}
		for _, f := range findings {
			problems = append(problems, f.Place()+" "+f.Code.Name)
		}
		if diff := cmp.Diff(c.objects, objects) + cmp.Diff(c.errors, problems); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(folder.ExampleDocuments) != c.examples || pkg.Meta.Name != "p" {
			t.Errorf("%s: %d examples of %s", name, len(folder.ExampleDocuments), pkg.Meta.Name)
		}
	}
}

func TestFindProject(t *testing.T) {
	for want, c := range map[string]struct{ files, ignored []string }{
		"crossplane-project.yaml": {[]string{"upbound.yaml", "crossplane-project.yaml", "crossplane.yaml"}, nil},
		"upbound.yaml":            {[]string{"upbound.yaml", "crossplane-project.yaml"}, []string{"crossplane-*.yaml"}},
		"":                        {[]string{"upbound.yml", "apis/upbound.yaml", "upbound.yaml"}, []string{"up*.yaml"}},
	} {
		fsys := fstest.MapFS{}
		for _, name := range c.files {
			fsys[name] = &fstest.MapFile{}
		}
		if got := Find(fsys, c.ignored); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFunctionsOfAProject(t *testing.T) {
	fsys := files(map[string]string{
		"functions/go/go.mod": "", "functions/go/main.go": "", "functions/go/x.tmpl": "", "functions/kcl/kcl.mod": "",
		"functions/old/main.py": "", "functions/new/pyproject.toml": "", "functions/ts/package.json": "",
		"functions/t/sub/a.yaml.gotmpl": "", "functions/empty/readme.md": "", "functions/readme.md": "", "f/x/go.mod": "",
	})
	p := &Project{Repository: "x.io/p", Paths: Paths{Functions: "functions"}}
	got, err := p.Functions(fsys)
	if err != nil {
		t.Fatal(err)
	}
	folder := func(name string, l Language) Function {
		return Function{Name: name, Folder: "functions/" + name, Language: l}
	}
	want := []Function{
		folder("empty", Unknown), folder("go", Go), folder("kcl", KCL), folder("new", Python), folder("old", Python),
		folder("t", GoTemplates), folder("ts", TypeScript),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if name := p.FunctionRepository("go"); name != "x.io/p_go" {
		t.Errorf("got %s", name)
	}
	p.Declared = []Function{{Name: "images", Tarball: "x"}, {Name: "go", Folder: "functions/go"}}
	got, err = p.Functions(fsys)
	if want := []Function{{Name: "images", Tarball: "x"}, folder("go", Go)}; err != nil || !slices.Equal(want, got) {
		t.Errorf("got %v, %v", got, err)
	}
	if p.Declared[1].Language != "" {
		t.Error("the Project changed")
	}
	p = &Project{Paths: Paths{Functions: "none"}}
	if got, err := p.Functions(fsys); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestMetadataOfFunctions(t *testing.T) {
	p, findings := Read([]byte(lines), "p.yaml", xpkg.Limits{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	f := metaOf(t, p.FunctionMeta("compose"))
	if f.Kind != xpkg.Function || f.Name != "p-compose" || f.Labels["a.b/c"] != "d" || len(f.DependsOn) > 0 ||
		f.Crossplane != "" || !f.HasCapability(xpkg.CapabilityOperation) || !f.HasCapability(xpkg.CapabilityComposition) {
		t.Errorf("got %+v", f)
	}
	want := map[string]string{
		xpkg.AnnotationLicense: "none", xpkg.AnnotationDescription: "The function compose of p.",
	}
	if diff := cmp.Diff(want, f.Annotations); diff != "" {
		t.Error(diff)
	}
	before := string(p.Meta.Raw)
	with := metaOf(t, p.WithFunctions([]dependency.Dependency{
		{APIVersion: "pkg.crossplane.io/v1", Kind: "Function", Package: "x.io/p_compose", Constraint: "v1.0.0"},
	}))
	if len(with.DependsOn) != 2 || with.DependsOn[1].Package != "x.io/p_compose" {
		t.Errorf("got %v", with.DependsOn)
	}
	if string(p.WithFunctions(nil).Raw) != before || len(metaOf(t, p.Meta).DependsOn) != 1 {
		t.Error("the metadata without functions changed")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(lines))
	f.Add([]byte(project + "  readme: \"\\u2028 \\x7f\\0\"\n  dependsOn: [{provider: x, version: v1}]\n"))
	f.Add([]byte(strings.Replace(project, "v2", "v1", 1) + "  additionalMetadata: {meta.upbound.io/a: b}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		limits := xpkg.Limits{StreamBytes: 1 << 16, Depth: 50, Nodes: 1000, AliasNodes: 1000}
		p, findings := Read(text, "p.yaml", limits)
		for _, found := range findings {
			if found.File != "p.yaml" || found.Line < 0 || found.Line > strings.Count(string(text), "\n")+2 { // the line after the end
				t.Fatalf("%+v", found)
			}
		}
		if p == nil {
			if len(findings) == 0 {
				t.Fatal("refused without a finding")
			}
			return
		}
		if _, err := p.Meta.JSON(); err != nil {
			t.Fatalf("the metadata cannot be read: %v\n%s", err, p.Meta.Raw)
		}
		again, _ := Read(text, "p.yaml", limits)
		if string(again.Meta.Raw) != string(p.Meta.Raw) {
			t.Fatal("the metadata is not reproducible")
		}
	})
}
