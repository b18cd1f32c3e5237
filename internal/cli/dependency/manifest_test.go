package dependency

import (
	"errors"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// An addition and its removal leave every other byte of the file as it was, whatever its layout.
func TestChangesKeepTheLayout(t *testing.T) {
	const crossplane = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: a}\nspec:\n"
	const modern = "apiVersion: pkg.crossplane.io/v1\n%[1]s  kind: Provider\n%[1]s  package: ghcr.io/acme/boats\n%[1]s  version: \">=v1.0.0\"\n"
	item := func(indent string) string { return indent + "- " + strings.ReplaceAll(modern, "%[1]s", indent) }
	for name, tc := range map[string]struct{ before, after string }{
		"no list": {
			crossplane + "  crossplane: {version: v2}\n",
			crossplane + "  crossplane: {version: v2}\n  dependsOn:\n" + item("  "),
		},
		"items at the column of the field": {
			crossplane + "  dependsOn:\n  - {function: ghcr.io/acme/f, version: v1} # one\n  # end\n  a: |\n    b\n",
			crossplane + "  dependsOn:\n  - {function: ghcr.io/acme/f, version: v1} # one\n  - provider: ghcr.io/acme/boats\n    version: \">=v1.0.0\"\n  # end\n  a: |\n    b\n",
		},
		"without a line end": {
			crossplane + "    dependsOn:\n      - kind: Function\n        package: ghcr.io/acme/f",
			crossplane + "    dependsOn:\n      - kind: Function\n        package: ghcr.io/acme/f\n" + item("      "),
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := parseManifest("crossplane.yaml", tc.before)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.add(entry{kind: xpkg.Provider, repository: "ghcr.io/acme/boats", version: ">=v1.0.0"})
			if err != nil || got != tc.after {
				t.Fatalf("%v\n%s\nwant\n%s", err, got, tc.after)
			}
			if m, err = parseManifest("crossplane.yaml", got); err != nil {
				t.Fatal(err)
			}
			e, ok := m.find("acme/boats")
			if !ok {
				t.Fatal("the dependency is not found")
			}
			raised, err := m.setVersion(e, ">=v2.0.0")
			if want := strings.ReplaceAll(tc.after, ">=v1.0.0", ">=v2.0.0"); err != nil || raised != want {
				t.Errorf("%v\n%s\nwant\n%s", err, raised, want)
			}
			removed, err := m.remove(e)
			if want := strings.TrimSuffix(tc.before, "\n") + "\n"; err != nil || removed != want {
				t.Errorf("%v\n%s\nwant\n%s", err, removed, want)
			}
		})
	}
}

// A file that cannot be changed without a change of other text is refused.
func TestOtherLayoutsAreRefused(t *testing.T) {
	for _, text := range []string{
		"spec: {dependsOn: [{provider: a/b, version: v1}]}\n", "spec:\n  dependsOn: [{provider: ghcr.io/a/b, version: v1}]\n",
		"kind: Configuration\n", "a: [\n", "", "spec:\n  dependsOn: text\n",
	} {
		m, err := parseManifest("crossplane.yaml", text)
		if err == nil {
			_, err = m.add(entry{kind: xpkg.Provider, repository: "ghcr.io/acme/boats", version: "v1"})
		}
		if !errors.Is(err, ErrNotEditable) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestExactVersionsAndLowerBoundsAreRaised(t *testing.T) {
	for constraint, want := range map[string]string{
		"v1.0.0": "v2.0.0", ">=v1.0.0": ">=v2.0.0", ">= v1.0.0": ">= v2.0.0", "=v1.0.0": "=v2.0.0",
		"v1": "", ">=v1.0.0,<v2": "", "": "", "sha256:0000": "", "latest": "", "~v1.0.0": "",
	} {
		got := ""
		if write := bound(constraint); write != nil {
			got = write("v2.0.0")
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", constraint, got, want)
		}
	}
}
