package dependencies

import (
	"strings"
	"testing"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

func TestTheTreeShowsTheInstallObjectsOfAProvider(t *testing.T) {
	in := packagesv1alpha1.NewInstall(packagesv1alpha1.PackageInstallKind)
	in.SetNamespace("team")
	in.SetName("mine")
	in.InstallStatus().Provider = "boats"
	p := &v1.Provider{}
	p.Name, p.Spec.Package = "boats", "registry.example.org/boats:v1.0.0"
	tree := newPackageTree(&inventory.Inventory{Packages: []v1.Package{p}, Lock: &v1beta1.Lock{}})
	tree.installs = []packagesv1alpha1.Install{in}
	var text strings.Builder
	tree.grow(p).write(&text, "", "")
	if !strings.Contains(text.String(), "└─ used by PackageInstall team/mine Ready=Unknown") {
		t.Errorf("the tree is\n%s", text.String())
	}
}

// reefs returns an inventory in which one package needs several kinds of another one, which was installed for it.
func reefs(t *testing.T) *inventory.Inventory {
	t.Helper()
	tides := &v1.Provider{}
	tides.Name, tides.Spec.Package = "acme-tides", "registry.example.org/acme/tides:v0.2.0"
	tides.Labels = map[string]string{graph.LabelAutoInstalled: "true"}
	graph.SetRequiredBy(tides, []string{"registry.example.org/acme/need"})
	need := &v1.Provider{}
	need.Name, need.Spec.Package = "acme-reefs", "registry.example.org/acme/need:v0.1.0"
	var selected []dependency.Dependency
	for _, kind := range []string{"Spring", "Tide", "Wave"} {
		selected = append(selected, dependency.Dependency{Package: "registry.example.org/acme/tides", Constraint: ">=v0.2.0", CRD: kind + ".tides.reef.test/v1"})
	}
	graph.SetKindProviders(need, selected)
	return &inventory.Inventory{Packages: []v1.Package{tides, need}, Lock: &v1beta1.Lock{}}
}

const reefKinds = "registry.example.org/acme/tides >=v0.2.0 for Spring.tides.reef.test/v1 and Tide.tides.reef.test/v1 and Wave.tides.reef.test/v1"

func TestTheTreeShowsThePackagesThatProvideKinds(t *testing.T) {
	tree := newPackageTree(reefs(t))
	roots := tree.roots()
	if len(roots) != 1 || roots[0].GetName() != "acme-reefs" {
		t.Fatalf("the roots are %v", inventory.ResourceNames(roots))
	}
	var text strings.Builder
	tree.grow(roots[0]).write(&text, "", "")
	for _, want := range []string{"└─ needs " + reefKinds + "\n", "   └─ provider/acme-tides  v0.2.0", "(installed for acme-reefs)"} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("there is not one %q in\n%s", want, text.String())
		}
	}
}

func TestAReasonNamesAllKindsOfAPackage(t *testing.T) {
	f := reefs(t).Closure()
	const tides = "registry.example.org/acme/tides"
	var text strings.Builder
	for _, path := range f.Paths(tides) {
		for _, asks := range asksAlong(f, path) {
			(&pathWriter{&text, map[string]bool{}}).write(asks)
		}
	}
	want := "you requested registry.example.org/acme/need v0.1.0\n└─ registry.example.org/acme/need v0.1.0 needs " + reefKinds + "\n"
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}

	// Also for several kinds that a user requests.
	f.Roots = nil
	for _, p := range f.Packages[0].Dependencies {
		f.Roots = append(f.Roots, dependency.Root{Package: p.Package, Constraint: p.Constraint, CRD: p.CRD})
	}
	text.Reset()
	writeClosureTree(&text, f, closureTree(f))
	if strings.Count(text.String(), "\n") != 1 || !strings.Contains(text.String(), "for Spring.tides.reef.test/v1 and Tide") {
		t.Errorf("the tree of the requested kinds is\n%s", text.String())
	}
}

// The text of several paths repeats no end of a path of two or more steps.
func TestPathsRepeatNoLongEnd(t *testing.T) {
	step := func(from, to string) askView { return askView{Dependent: from, Package: to, Constraint: "*"} }
	var text strings.Builder
	paths := pathWriter{&text, map[string]bool{}}
	for _, path := range [][]askView{
		{step("you", "c"), step("c", "b"), step("b", "a")},
		{step("you", "d"), step("d", "c"), step("c", "b"), step("b", "a")},
		{step("you", "e"), step("e", "b"), step("b", "a")},
	} {
		paths.write(path)
	}
	want := "you requested c *\n└─ c needs b *\n   └─ b needs a *\nyou requested d *\n└─ d needs c * (see above)\nyou requested e *\n└─ e needs b *\n   └─ b needs a *\n"
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", text.String(), want)
	}
}
