package boundaries_test

import (
	"os/exec"
	"strings"
	"testing"
)

// wings are the products that stand beside the core: the package manager, its commands and the local control plane. The
// core must work, and be understood, without them.
var wings = map[string][]string{
	"registry": {
		"internal/registry", "internal/indexer", "internal/mirror", "internal/retention", "internal/packagestatus",
		"internal/cli/registry",
		"internal/cli/indexes",
	},
	// The format of its packages, pkg/firstgen, belongs to the core, which reads packages of every format.
	"firstgen": {
		"apis/packages", "internal/controller/firstgen", "internal/migration/firstgeneration", "internal/cli/firstgeneration",
	},
	"compose": {"internal/composition", "internal/function", "internal/localcore", "internal/cli/compose"},
}

// composers are the packages that put the program together from the core and the wings, or describe all of it.
var composers = []string{
	"cmd", "internal/cli", "internal/docs", "internal/errcodes", "internal/testing", "test", "apis", "apis/crds",
}

// crossings are the imports of wings by the core that exist. A new one needs an interface instead, and one that is
// removed is removed here.
var crossings = map[string][]string{
	"internal/cli/content": {"registry"},
	"internal/cli/manager": {"registry"},
	"internal/fetch":       {"registry"},
	"internal/up":          {"registry"},
	"internal/up/registry": {"registry"},
}

// wingOf returns the wing of a package, or "" for the core.
func wingOf(pkg string) string {
	for wing, folders := range wings {
		for _, folder := range folders {
			if within(pkg, folder) {
				return wing
			}
		}
	}
	return ""
}

// TestTheCoreKnowsNoWings proves that the core, and each wing, imports no other wing, but for the crossings that are
// listed.
func TestTheCoreKnowsNoWings(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	got := map[string]map[string]bool{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], module)
		wing := wingOf(pkg)
		if wing == "" && isComposer(pkg) {
			continue
		}
		if wing != "" {
			pkg += " (" + wing + ")"
		}
		for _, imported := range words[1:] {
			other := wingOf(strings.TrimPrefix(imported, module))
			if !strings.HasPrefix(imported, module) || other == "" || other == wing {
				continue
			}
			if got[pkg] == nil {
				got[pkg] = map[string]bool{}
			}
			got[pkg][other] = true
		}
	}
	listed := map[string]bool{}
	for pkg, others := range crossings {
		for _, wing := range others {
			listed[pkg+" "+wing] = true
			if !got[pkg][wing] {
				t.Errorf("%s does not import the wing %s any more: remove it from the list", pkg, wing)
			}
		}
	}
	for pkg, others := range got {
		for wing := range others {
			if !listed[pkg+" "+wing] {
				t.Errorf("%s imports the wing %s: ask for what it needs with an interface", pkg, wing)
			}
		}
	}
}

// isComposer reports whether a package is a composer. The subpackages of internal/cli are not, because they belong to
// the core or to a wing.
func isComposer(pkg string) bool {
	for _, c := range composers {
		if pkg == c || c != "internal/cli" && c != "apis" && within(pkg, c) {
			return true
		}
	}
	return false
}
