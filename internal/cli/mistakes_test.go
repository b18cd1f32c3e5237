package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// mistake is a mistake of an author: a text in a file of a correct package is replaced by another.
type mistake struct {
	file, old, new string
	// code and message are those of the finding, and at is a text in the line that it names.
	code, message, at string
	// local means that the mistake is found without the dependencies, by lint and build.
	local bool
	// harmless means that the finding is a warning: the mistake has no effect in a cluster, or it depends on other packages.
	harmless bool
}

// mistakes are mistakes of authors of Configurations.
func mistakes() []mistake {
	const (
		meta, definition, composition, example = "crossplane.yaml", "definition.yaml", "composition.yaml", "examples/fleet.yaml"
		resource, patch, kind, unknown         = "InvalidResource", "InvalidPatch", "KindWithoutSchema", "UnknownField"
	)
	return []mistake{
		// The metadata and its dependencies.
		{meta, "acme/boats", "acme/baots", "RepositoryNotFound", "acme/baots does not exist", "acme/baots", false, false},
		{meta, "boats\n    version: \">=v1.0.0\"", "boats\n    version: \">=v9.0.0\"", "Unsolvable", "version conflict", "dependsOn", false, false},
		{meta, `">=v1.0.0"`, `">>v1.0.0"`, "InvalidConstraint", ">>v1.0.0", ">>v1.0.0", true, false},
		{meta, "  dependsOn:", "  dependOn:", "UnknownMetaField", `did you mean "dependsOn"`, "dependOn", true, true},
		{meta, "name: fleet", "name: Fleet_1", "InvalidMetaName", "lower-case RFC 1123 name", "apiVersion", true, false},
		{meta, "license: Apache-2.0", "license: Apache", "InvalidLicense", "Apache", "license", true, true},
		{meta, "kind: Configuration", "kind: Configurations", "UnsupportedMeta", `did you mean "Configuration"`, "apiVersion", true, false},

		// The definition.
		{definition, "name: fleets.navy.example.org", "name: fleet.navy.example.org", "InvalidXRD", `metadata.name must be "fleets.navy.example.org"`, "name:", true, false},
		{definition, "- length\n", "- lenght\n", unknown, `did you mean "length"`, "lenght", true, true},
		{definition, "motor: {type: boolean}", "motor: {type: bool}", "InvalidXRD", "bool", "motor", true, false},
		{definition, "scope: Cluster", "scope: cluster", "InvalidPackageObject", "spec.scope", "scope", true, false},
		{definition, "referenceable: true", "referencable: true", "InvalidPackageObject", "referenceable", "- name: v1", true, false},

		// The kinds of a Composition.
		{composition, "kind: Fleet\n", "kind: Fleets\n", kind, "no package defines Fleets of navy.example.org/v1; similar: Fleet", "Fleets", false, false},
		{composition, "navy.example.org/v1\n", "navy.example.org/v2\n", kind, "similar: Fleet of navy.example.org/v1", "kind: Fleet", false, false},
		{composition, "kind: ConfigMap\n", "kind: ConfigMapp\n", kind, "Kubernetes has no kind ConfigMapp of v1; similar: ConfigMap of v1", "ConfigMapp", true, false},
		{composition, "kind: Deployment", "kind: Deploymnet", kind, "similar: Deployment of apps/v1", "Deploymnet", true, false},
		{composition, "apps/v1", "apps/v2", kind, "similar: Deployment of apps/v1", "kind: Deployment", true, false},
		{composition, "kind: Boat\n", "kind: Baot\n", kind, "similar: Boat of acme.example.org/v1", "Baot", false, false},
		{composition, "acme.example.org/v1", "acme.example.com/v1", kind, "similar: Boat of acme.example.org/v1", "kind: Boat", false, true},

		// Functions.
		{composition, "acme-function-patch-and-transform", "acme-function-patch-and-transfrom", "FunctionUnknown", `did you mean "acme-function-patch-and-transform"`, "transfrom", true, false},
		{composition, "acme-function-patch-and-transform", "function-patch-and-transform", "FunctionNamedOtherwise", "acme-function-patch-and-transform if it is a dependency", "name: function", true, true},
		{composition, "      kind: Resources", "      kind: Resource", kind, "similar: Resources", "kind: Resource", false, true},
		{composition, "mode: Pipeline", "mode: Pipline", "InvalidPackageObject", "spec.mode", "mode", true, false},
		{composition, "  pipeline:", "  pipelines:", unknown, `did you mean "pipeline"`, "pipelines", true, true},
		{composition, "functionRef:", "functionref:", "InvalidPackageObject", "functionRef", "step", true, false},
		{composition, "          {{- end }}\n", "", "InvalidTemplate", "unexpected EOF", "length: {{ . }}", true, false},
		{composition, "{{ . }}}}", "{{ . }", "InvalidTemplate", `unexpected "}"`, "{{ . }", true, false},
		{composition, "{{ . }}", "{{ $lenght }}", "InvalidTemplate", `undefined variable "$lenght"`, "$lenght", true, false},

		// Bases.
		{composition, "color: red\n              crew", "colour: red\n              crew", resource, `unknown field, did you mean "color"`, "colour", false, false},
		{composition, "color: red\n              crew", "color: green\n              crew", resource, `supported values: "red", "blue"`, "green", false, false},
		{composition, "color: red\n              crew", "motor: yes please\n              crew", resource, "must be of type boolean", "motor", false, false},
		{composition, "- name: Ann", "- age: 3", resource, "crew[0].name: Required value", "- age", false, false},
		{composition, "          spec:\n            forProvider:", "          specs:\n            forProvider:", resource, `did you mean "spec"`, "specs", false, false},
		{composition, "replicas: 1", "replica: 1", resource, `unknown field, did you mean "replicas"`, "replica", true, false},
		{composition, "replicas: 1", "replicas: one", resource, "must be of type integer", "replicas", true, false},
		{composition, "image: ghcr", "images: ghcr", resource, `containers[0].images: unknown field, did you mean "image"`, "images", true, false},
		{composition, "            labels:\n              app: server\n          spec", "            lables:\n              app: server\n          spec", resource, `metadata.lables: unknown field, did you mean "labels"`, "lables", true, false},
		{composition, "              app: server\n          spec", "              app: 1\n          spec", resource, "metadata.labels.app", "app: 1", true, false},
		{composition, "            color: red\n        patches", "            color: 1\n        patches", resource, "data.color", "color: 1", true, false},
		{composition, "- name: settings", "- nam: settings", resource, `nam: unknown field, did you mean "name"`, "nam", false, false},

		// Required fields that neither the base nor a patch sets.
		{composition, "        - fromFieldPath: spec.length\n          toFieldPath: spec.forProvider.length\n", "", resource, "spec.forProvider.length: Required value", "forProvider", false, false},
		{composition, "        - type: PatchSet\n          patchSetName: harbor\n", "", resource, "spec.forProvider.harbor: Required value", "forProvider", false, false},

		// Patches.
		{composition, "fromFieldPath: spec.length\n          toFieldPath: spec.forProvider.length", "fromFieldPath: spec.lenght\n          toFieldPath: spec.forProvider.length", "IneffectivePath", `Fleet has no field spec.lenght: spec.lenght: unknown field, did you mean "length"`, "spec.lenght", true, true},
		{composition, "fromFieldPath: spec.length\n          toFieldPath: spec.forProvider.length", "fromFieldPath: spec.lenght\n          policy: {fromFieldPath: Required}\n          toFieldPath: spec.forProvider.length", patch, "Fleet has no field spec.lenght", "spec.lenght", true, false},
		{composition, "toFieldPath: spec.forProvider.length", "toFieldPath: spec.forProvider.lenght", patch, `Boat has no field spec.forProvider.lenght: spec.forProvider.lenght: unknown field, did you mean "length"`, "lenght", false, false},
		{composition, "toFieldPath: spec.forProvider.length", "toFieldPath: spec.forProvider.color", patch, "spec.forProvider.color is of the type string, and the value is of the type integer", "forProvider.color", false, false},
		{composition, "          transforms:\n          - type: string\n            string: {fmt: \"%d\"}\n", "", patch, "tags[length] is of the type string, and the value is of the type integer", "tags[length]", false, false},
		{composition, "toFieldPath: spec.forProvider.harbor", "toFieldPath: spec.forProvider.motor", patch, "is of the type boolean, and the value is of the type string", "forProvider.motor", false, false},
		{composition, "fromFieldPath: status.atProvider.id", "fromFieldPath: status.atProvider.uid", "IneffectivePath", `Boat has no field status.atProvider.uid`, "atProvider.uid", false, true},
		{composition, "toFieldPath: status.id", "toFieldPath: status.ids", patch, `Fleet has no field status.ids: status.ids: unknown field, did you mean "id"`, "status.ids", true, false},
		{composition, "toFieldPath: status.id", "toFieldPath: status.count", patch, "is of the type integer, and the value is of the type string", "status.count", false, false},
		{composition, "patchSetName: harbor", "patchSetName: harbour", patch, `there is no patch set "harbour"`, "harbour", true, false},
		{composition, "type: ToCompositeFieldPath", "type: ToComposite", resource, `Unsupported value: "ToComposite"`, "ToComposite", false, false},
		{composition, "toFieldPath: spec.forProvider.length", "toFieldpath: spec.forProvider.length", resource, `unknown field, did you mean "toFieldPath"`, "toFieldpath", false, false},
		{composition, "spec.forProvider.tags[length]", "spec.forProvider.tags[length", patch, "a bracket that is not closed", "tags[length", true, false},
		{composition, "            - fromFieldPath: spec.harbor", "            - fromFieldPath: spec.harbour", "IneffectivePath", `did you mean "harbor"`, "harbour", true, true},
		{composition, "toFieldPath: metadata.labels[place]", "toFieldPath: metadata.label[place]", patch, `did you mean "labels"`, "metadata.label[", false, false},
		{composition, "toFieldPath: data.harbor", "toFieldPath: datas.harbor", patch, `ConfigMap has no field datas.harbor: datas: unknown field, did you mean "data"`, "datas", true, false},
		{composition, "fieldPath: status.readyReplicas", "fieldPath: status.readyReplica", patch, `did you mean "readyReplicas"`, "readyReplica", true, false},
		{composition, "- name: settings", "- name: boat", patch, `a resource before has the name "boat"`, "- name: boat", true, false},

		// Examples.
		{example, "  length: 12\n", "", resource, "spec.length: Required value", "spec", false, false},
		{example, "length: 12", "length: twelve", resource, "must be of type integer", "twelve", false, false},
		{example, "harbor: Hull\n  cross", "harbour: Hull\n  cross", resource, `unknown field, did you mean "harbor"`, "harbour", false, false},
		{example, "kind: Fleet", "kind: Flet", kind, "similar: Fleet of navy.example.org/v1", "apiVersion", false, false},
		{example, "    harbor: Hull\n", "", resource, "spec.forProvider.harbor is a required parameter", "spec", false, false},
		{example, "kind: Secret", "kind: Secrets", kind, "similar: Secret of v1", "apiVersion: v1", false, false},
		{example, "stringData:\n  key", "stringdata:\n  key", resource, `did you mean "stringData"`, "stringdata", false, false},
		{example, "name: ours", "name: Ours", resource, "RFC 1123", "Ours", false, false},
		{example, "metadata:\n  name: ours", "metadata:\n name: ours\n  x: y", "InvalidExample", "", "x: y", true, true},
	}
}

// TestMistakesOfAuthorsAreFound makes one mistake after the other in a correct package.
func TestMistakesOfAuthorsAreFound(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	registry := cluster.Registry(t)
	source := filepath.Join("testdata", "mistakes")
	for folder, name := range map[string]string{
		"boats": "boats", "patch": "function-patch-and-transform", "tide": "function-go-templating",
	} {
		file := filepath.Join(t.TempDir(), "a.xpkg")
		runXpkg(t, "build", "-f", filepath.Join(source, folder), "-o", file)
		runXpkg(t, "push", "-f", file, registry+"/acme/"+name+":v1.0.0")
	}
	if got := reported(t, "check", fleet(t, registry, mistake{})); len(got) > 0 {
		t.Fatalf("the correct package has the findings %v", got)
	}
	for _, m := range mistakes() {
		t.Run(m.code+"/"+m.at, func(t *testing.T) {
			dir := fleet(t, registry, m)
			for _, command := range []string{"check", "lint"} {
				found := slices.DeleteFunc(reported(t, command, dir), func(f reportedFinding) bool {
					return f.Code != m.code || !strings.Contains(f.Message, m.message)
				})
				if command == "lint" && !m.local {
					if len(found) > 0 {
						t.Errorf("lint found %v without the dependencies", found)
					}
					continue
				}
				if len(found) == 0 {
					t.Errorf("%s did not find it, and found %v", command, reported(t, command, dir))
					continue
				}
				f := found[0]
				text, err := os.ReadFile(f.File)
				if err != nil {
					t.Fatal(err)
				}
				lines := strings.Split(string(text), "\n")
				if f.Line < 1 || !strings.Contains(lines[f.Line-1], m.at) || filepath.Base(f.File) != filepath.Base(m.file) {
					t.Errorf("%s names %s:%d, %q", command, f.File, f.Line, lines[max(0, f.Line-1)])
				}
				if f.Fix == "" {
					t.Error("there is no fix")
				}
				if severity := map[bool]string{true: "warning", false: "error"}[m.harmless]; command == "check" && f.Severity != severity {
					t.Errorf("the severity is %s, want %s", f.Severity, severity)
				}
			}
		})
	}
}

// fleet writes the package with a mistake, and returns its folder.
func fleet(t *testing.T, registry string, m mistake) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"crossplane.yaml", "definition.yaml", "composition.yaml", "examples/fleet.yaml"} {
		raw, err := os.ReadFile(filepath.Join("testdata", "mistakes", "fleet", name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(raw), "$REGISTRY", registry)
		if name == m.file {
			if !strings.Contains(text, m.old) {
				t.Fatalf("%s does not contain %q", name, m.old)
			}
			text = strings.Replace(text, m.old, m.new, 1)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reportedFinding is a finding in JSON.
type reportedFinding struct {
	Code, Severity, Message, File, Fix string
	Line                               int
}

// reported returns the findings of a command.
func reported(t *testing.T, command, dir string) []reportedFinding {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	args := []string{"xpkg", command, dir, "-o", "json"}
	if command == "check" {
		args = append(args, "--no-render")
	}
	code := cli.Main(t.Context(), args, env)
	var found []reportedFinding
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	hasError := slices.ContainsFunc(found, func(f reportedFinding) bool { return f.Severity == "error" })
	if hasError != (code == 4) || code != 0 && code != 4 {
		t.Errorf("%s: exit code %d with the findings %v\n%s", command, code, found, errs.String())
	}
	return found
}
