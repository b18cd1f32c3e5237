package operation

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/graph"
)

// A transaction installs a package explicitly, or as a dependency. It never makes a dependency of a package that a user has installed
// explicitly, and makes an explicit package of a dependency only if it wants one.
func TestTransactionsKeepExplicitPackages(t *testing.T) {
	explicit, dependency, unmarked := named(v1.ProviderKind, "hull"), named(v1.ProviderKind, "hull"), named(v1.ProviderKind, "hull")
	dependency.SetLabels(map[string]string{graph.LabelAutoInstalled: "true"})
	graph.SetRequiredBy(unmarked, []string{"r/deck"})
	requiredBy := map[string]string{graph.AnnotationRequiredBy: "r/deck"}
	for name, tc := range map[string]struct {
		live         v1.Package
		annotations  map[string]string
		isDependency bool
	}{
		"new":                           {nil, nil, false},
		"new dependency":                {nil, requiredBy, true},
		"explicit":                      {explicit, nil, false},
		"explicit, as a dependency":     {explicit, requiredBy, false},
		"dependency":                    {dependency, requiredBy, true},
		"dependency, explicitly":        {dependency, nil, false},
		"dependency without its label":  {unmarked, requiredBy, true},
		"explicitly, without its label": {unmarked, nil, false},
	} {
		w := v1alpha1.WantedPackage{PackageName: nameOf(explicit), Annotations: tc.annotations}
		got := wanted(w, tc.live)
		if is := graph.IsAutoInstalled(got) || graph.IsUnmarkedDependency(got); is != tc.isDependency {
			t.Errorf("%s: %v, %v", name, got.GetLabels(), got.GetAnnotations())
		}
	}
}
