package corpus_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// near is the number of lines within which a kind and an apiVersion belong together.
const near = 4

// mostExtras is the largest share of inferred kinds that no line of a Composition names, in percent.
const mostExtras = 10

// The managed resources that are inferred for the Configurations of the corpus, among all that its Providers offer, are
// those that a reader of the files finds line by line: an apiVersion with a kind beside it. None is missing, and few have
// no apiVersion near their kind.
func TestKindsOfConfigurations(t *testing.T) {
	dir := corpus.Dir(t)
	offered := offeredKinds(t, dir)
	items, err := filepath.Glob(filepath.Join(dir, "configurations", "*"))
	if err != nil || len(items) == 0 {
		t.Fatalf("no configurations in the corpus (%v)", err)
	}
	packages, open, used, extras := 0, 0, 0, 0
	for _, item := range items {
		for _, root := range configurationRoots(t, item) {
			folder, err := xpkg.ReadFolder(os.DirFS(root), xpkg.FolderOptions{ExamplesRoot: "examples"})
			if err != nil {
				t.Fatal(err)
			}
			pkg, err := folder.Package(xpkg.ReadOptions{})
			if err != nil || pkg.Meta.Kind != xpkg.Configuration {
				continue // The checks of the corpus tell why.
			}
			uses, err := activation.UsedBy(pkg)
			if err != nil {
				t.Fatal(err)
			}
			packages++
			if uses.Open {
				open++
			}
			inferred := map[schema.GroupKind]bool{}
			for _, k := range uses.Kinds {
				if offered[k] {
					inferred[k] = true
				}
			}
			named, near := namedKinds(t, root, offered, 1), namedKinds(t, root, offered, near)
			for _, k := range slices.SortedFunc(maps.Keys(named), byName) {
				if !inferred[k] {
					t.Errorf("%s: %s is named and not inferred", strings.TrimPrefix(root, dir), k)
				}
			}
			for _, k := range slices.SortedFunc(maps.Keys(inferred), byName) {
				used++
				if !near[k] {
					extras++
					t.Logf("%s: %s is inferred and not named", strings.TrimPrefix(root, dir), k)
				}
			}
		}
	}
	t.Logf("%d configurations, %d of them open; %d kinds inferred among %d offered ones, %d more than named", packages, open, used,
		len(offered), extras)
	if packages < 60 || used < 100 || extras*100 > used*mostExtras {
		t.Errorf("%d packages with %d kinds and %d extras", packages, used, extras)
	}
}

func byName(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }

// offeredKinds returns the managed resources of all Providers of the corpus.
func offeredKinds(t *testing.T, dir string) map[schema.GroupKind]bool {
	t.Helper()
	group, kind := regexp.MustCompile(`(?m)^  group: (\S+)$`), regexp.MustCompile(`(?m)^    kind: (\S+)$`)
	out := map[schema.GroupKind]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "providers", "*", "package", "crds", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		g, k := group.FindSubmatch(text), kind.FindSubmatch(text)
		if g != nil && k != nil && !strings.Contains(string(k[1]), "ProviderConfig") {
			out[schema.GroupKind{Group: string(g[1]), Kind: string(k[1])}] = true
		}
	}
	return out
}

// configurationRoots returns the folders of an item that contain the metadata of a package.
func configurationRoots(t *testing.T, item string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(item, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == "crossplane.yaml" {
			out = append(out, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// namedKinds returns the offered kinds that the Compositions in a folder name within some lines of their apiVersion.
func namedKinds(
	t *testing.T, root string, offered map[schema.GroupKind]bool, within int,
) map[schema.GroupKind]bool {
	t.Helper()
	version := regexp.MustCompile(`^[\s-]*apiVersion\s*[:=] ["']?([a-z0-9.-]+)/v[a-z0-9]+["']?\s*$`)
	kind := regexp.MustCompile(`^[\s-]*kind\s*[:=] ["']?([A-Za-z0-9]+)["']?\s*$`)
	out := map[schema.GroupKind]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "examples" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !regexp.MustCompile(`(?m)^kind: ["']?Composition["']?\s*$`).Match(text) {
			return err
		}
		lines := strings.Split(string(text), "\n")
		for i := range lines {
			v := version.FindStringSubmatch(lines[i])
			for j := max(0, i-within); v != nil && j <= min(len(lines)-1, i+within); j++ {
				k := kind.FindStringSubmatch(lines[j])
				if k != nil && offered[schema.GroupKind{Group: v[1], Kind: k[1]}] {
					out[schema.GroupKind{Group: v[1], Kind: k[1]}] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(fmt.Errorf("read %s: %w", root, err))
	}
	return out
}

// forms are the ways in which the input of a function, or a required resource, names a kind: texts with the API version
// and the kind.
var forms = map[string]string{
	"base of patch and transform": `{"functionRef": {"name": "function-patch-and-transform"}, "input": {"apiVersion": "pt.fn.crossplane.io/v1beta1",
"kind": "Resources", "resources": [{"name": "a", "base": {"apiVersion": %q, "kind": %q, "spec": {}}}]}}`,
	"resources without a pipeline": `{"resources": [{"base": {"apiVersion": %q, "kind": %q}}]}`,
	"go template":                  `{"input": {"inline": {"template": "{{ range .x }}\n---\napiVersion: %s\nkind: %s\nmetadata: {}\n{{ end }}"}}}`,
	"go template in one line":      `{"input": {"inline": {"template": "{apiVersion: '%s', kind: '%s'}"}}}`,
	"KCL":                          `{"input": {"spec": {"source": "items = [{\n  apiVersion = \"%s\"\n  kind = \"%s\"\n}]"}}}`,
	"Python":                       `{"input": {"script": "r = {'apiVersion': '%s', 'kind': '%s'}"}}`,
	"CUE":                          `{"input": {"export": {"value": "apiVersion: \"%s\"\nkind: \"%s\""}}}`,
	"Pythonic":                     `{"input": {"composite": "self.resources.x('%s', kind='%s')\nkind = 1"}}`,
	"required resource":            `{"requirements": {"requiredResources": [{"requirementName": "x", "apiVersion": %q, "kind": %q}]}}`,
	"extra resource": `{"input": {"apiVersion": "e.fn.crossplane.io/v1", "kind": "Input", "spec": {"extraResources": [{
"into": "y", "apiVersion": %q, "kind": %q}]}}}`,
	"list of objects": `{"input": {"objects": [{"apiVersion": %q, "kind": %q}, null, 3]}}`,
}

// Of the managed resources of all Providers of the corpus, exactly those are active that Compositions use, in many forms.
func TestUsedKindsInManyForms(t *testing.T) {
	const used = 43
	all := slices.SortedFunc(maps.Keys(offeredKinds(t, corpus.Dir(t))), byName)
	if len(all) < 900 {
		t.Fatalf("only %d kinds are offered", len(all))
	}
	var offered []activation.Kind
	for _, k := range all {
		offered = append(offered, activation.Kind{Name: k.String(), GroupKind: k, Managed: true})
	}
	names := slices.Sorted(maps.Keys(forms))
	for round := range len(names) {
		var steps []any
		want := map[string]bool{}
		for i := range used {
			k := all[(i*len(all)/used+round*7)%len(all)]
			want[k.String()] = true
			var step any
			text := fmt.Sprintf(forms[names[(i+round)%len(names)]], k.Group+"/v1beta1", k.Kind)
			if err := json.Unmarshal([]byte(text), &step); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			steps = append(steps, step)
		}
		uses := activation.Use{By: "composition/x", Kinds: activation.UsesOf(map[string]any{"pipeline": steps})}
		got := activation.Needs{Safe: true, Choice: activation.Choice{Used: true}, Uses: []activation.Use{uses}}.Select(offered)
		for k := range want {
			if !got.IsActive(k) {
				t.Errorf("%s is used and not active", k)
			}
		}
		if n := len(got.Reasons); n != len(want) {
			t.Errorf("%d kinds are active, %d are used", n, len(want))
		}
	}
	t.Logf("%d offered kinds, %d used ones in %d forms", len(all), used, len(forms))
}
