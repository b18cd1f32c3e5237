package crds

import (
	"path"
	"slices"
	"sort"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
)

// The versions of Crossplane that our definitions are compared with.
var upstreamVersions = []string{"HEAD", "v2.3.4", "v1.20.11", "v1.14.0"}

// TestCompatibility proves that our CRDs contain every statement of upstream's CRDs, and the
// reverse for the newest version. Each difference has an entry with a reason in the table of
// differences, and each entry there still differs.
func TestCompatibility(t *testing.T) {
	corpus.Dir(t) // Without it the whole test is skipped, and not each version.
	mine := ours(t, Packages)
	used := make([]bool, len(differences))
	for _, version := range upstreamVersions {
		t.Run(version, func(t *testing.T) {
			for name, theirs := range upstream(t, version) {
				if !isPackageCRD(name) || version == "v1.14.0" && name != "controllerconfigs.pkg.crossplane.io" {
					continue
				}
				if mine[name] == nil {
					t.Errorf("%s is missing", name)
					continue
				}
				compare(t, used, version, theirs, mine[name])
			}
		})
	}
	for i, d := range differences {
		if !used[i] {
			t.Errorf("this difference is none any more; remove it from the table: %+v", d)
		}
	}
}

func compare(t *testing.T, used []bool, version string, theirs, mine *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	a, b := flatten(t, theirs), flatten(t, mine)
	for _, at := range places(a, b) {
		there, here := a[at], b[at]
		how := change(a, b, at)
		if there == here || how == "added" && version != newest {
			continue // Later additions of upstream are no difference.
		}
		if !deliberate(used, version, theirs.Name, how, at) {
			t.Errorf("%s: %s %q\n  upstream: %s\n      ours: %s", theirs.Name, how, at, there, here)
		}
	}
}

// change returns the change of ours at a place of upstream's CRD.
func change(theirs, mine facts, at string) string {
	if _, ok := theirs[at]; !ok {
		return "added"
	}
	if _, ok := mine[at]; !ok {
		return "removed"
	}
	return "changed"
}

// places returns all places about which either side contains a statement.
func places(a, b facts) []string {
	var out []string
	for at := range a {
		out = append(out, at)
	}
	for at := range b {
		out = append(out, at)
	}
	sort.Strings(out)
	return slices.Compact(out)
}

// deliberate marks every entry of the table of differences that explains this difference.
func deliberate(used []bool, version, crd, change, at string) bool {
	return isListed(differences, used, version, crd, change, at)
}

// isListed marks every entry of a table that explains this difference.
func isListed(table []difference, used []bool, version, crd, change, at string) bool {
	plural, _, _ := strings.Cut(crd, ".")
	found := false
	for i, d := range table {
		if matches(d.version, version) && matches(d.crd, plural) && matches(d.change, change) && matches(d.at, at) {
			used[i], found = true, true
		}
	}
	return found
}

// matches takes a name, a shell pattern, or several of either separated by "|".
func matches(pattern, name string) bool {
	for p := range strings.SplitSeq(pattern, "|") {
		// In a shell pattern brackets would be a class of characters, and here
		// they are the elements of a list.
		p = strings.NewReplacer("[", `\[`, "]", `\]`).Replace(p)
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}
