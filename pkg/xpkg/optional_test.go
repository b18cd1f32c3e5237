package xpkg

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// withOptional returns the metadata of a provider whose annotation lists optional
// dependencies.
func withOptional(list, spec string) string {
	list = "    " + strings.ReplaceAll(strings.TrimSpace(list), "\n", "\n    ")
	return "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: p\n  annotations:\n    meta.xpkg.dev/optional-dependencies: |\n  " +
		strings.ReplaceAll(list, "\n", "\n  ") + "\n" + spec
}

func TestOptionalDependencies(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	want := []dependency.Dependency{
		{APIVersion: "pkg.crossplane.io/v1", Kind: string(Provider), Package: "x/p", Constraint: ">=v1.2.0", Optional: true},
		{APIVersion: "pkg.crossplane.io/v1", Kind: string(Function), Package: "x/f", Constraint: digest, Optional: true},
	}
	for name, list := range map[string]string{
		"YAML": "- {provider: x/p, version: '>=v1.2.0'}\n- apiVersion: pkg.crossplane.io/v1\n  kind: Function\n  package: x/f\n  version: " +
			digest,
		"JSON": `[{"provider": "x/p", "version": ">=v1.2.0"}, {"function": "x/f", "version": "` + digest + `"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			m, findings := metaOf(t, withOptional(list, "spec:\n  dependsOn:\n  - {provider: x/d, version: v1}\n"))
			if diff := cmp.Diff(want, m.Optional); diff != "" || len(findings) != 0 {
				t.Errorf("%s%v", diff, findings)
			}
			if len(m.DependsOn) != 1 || len(m.Dependencies()) != 3 || m.Dependencies()[0].Optional {
				t.Errorf("got %+v", m.Dependencies())
			}
		})
	}
}

func TestWrongOptionalDependencies(t *testing.T) {
	const at = "metadata.annotations[meta.xpkg.dev/optional-dependencies]"
	for name, c := range map[string]struct{ list, spec, code, want string }{
		"no YAML":    {"[", "", "InvalidOptionalDependencies", at + ": "},
		"no list":    {"provider: x/p", "", "MalformedMeta", at + " is a mapping, want a list"},
		"a text":     {"x/p", "", "MalformedMeta", at + " is a string, want a list"},
		"no package": {"- {version: v1}", "", "MalformedMeta", at + "[0] names 0 packages; exactly one is required"},
		"no version": {"- {provider: x/p}", "", "InvalidConstraint", at + "[0].version: "},
		"no constraint": {
			"- {provider: x/p, version: v1}\n- {provider: x/q, version: '>=v1 ||'}", "", "InvalidConstraint",
			at + "[1].version: ",
		},
		"an alias": {"- &a {provider: x/p, version: &b [*b]}", "", "InvalidOptionalDependencies", at + ": "},
		"in both lists": {
			"- {provider: x/p, version: v1}", "spec:\n  dependsOn:\n  - {function: x/p, version: v1}\n",
			"InvalidOptionalDependencies", at + `: "x/p" is in spec.dependsOn too`,
		},
		"a field misspelt": {"- {provider: x/p, version: v1, verison: v2}", "", "UnknownMetaField", "unknown field \"" + at +
			`[0].verison", did you mean "version"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := metaOf(t, withOptional(c.list, c.spec))
			if len(findings) != 1 || findings[0].Code.Name != c.code || !strings.HasPrefix(findings[0].Message, c.want) ||
				findings[0].Line != 6 {
				t.Errorf("got %+v", findings)
			}
			_, err := Read([]byte(withOptional(c.list, c.spec)), ReadOptions{})
			if refused := c.code != "UnknownMetaField"; refused != (err != nil) {
				t.Errorf("at an install: %v", err)
			}
		})
	}
}

func FuzzOptionalDependencies(f *testing.F) {
	f.Add("- {provider: a, version: '>=v1'}")
	f.Add(`[{"package": "a", "kind": "Function", "version": "v1"}]`)
	f.Add("- &a b\n- *a\n---\n")
	f.Fuzz(func(t *testing.T, list string) {
		limits := (&Limits{Depth: 50, Nodes: 1000}).WithDefaults()
		r := &metaReader{limits: &limits}
		for _, d := range r.optional(list) {
			if !d.Optional || d.Package == "" || version.CheckConstraint(d.Constraint, true) != nil {
				t.Fatalf("dependency %+v", d)
			}
		}
	})
}
