package dependencies

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
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
	tree.installs = []*frontend.Object{firstgen.Frontend().Of(in)}
	var text strings.Builder
	tree.grow(p).write(&text, "", "", "")
	if !strings.Contains(text.String(), "└─ used by PackageInstall team/mine Ready=Unknown") {
		t.Errorf("the tree is\n%s", text.String())
	}
}

// The Lock contains the running revision and the objects of a package, unless another version may run.
func TestTheTreeReadsRevisionsThatAreNotInTheLock(t *testing.T) {
	lock := &v1beta1.Lock{}
	packageOf := func(name, version string, owns []v1beta1.LockOwned) *v1.Provider {
		p := &v1.Provider{}
		p.Name, p.Spec.Package, p.Status.CurrentRevision = name, "registry.example.org/"+name+":"+version, name+"-1"
		p.SetConditions(metav1.Time{}, v1.Healthy())
		lock.Packages = append(lock.Packages, v1beta1.LockPackage{
			Name: name + "-1", Source: "registry.example.org/" + name, Version: "v1.0.0", Owns: owns,
		})
		return p
	}
	owns := []v1beta1.LockOwned{{Kind: "CustomResourceDefinition", Count: 3}, {
		Kind: "ValidatingWebhookConfiguration", Count: 1,
	}}
	listed, changed, unhealthy, empty := packageOf("listed", "v1.0.0", owns), packageOf("changed", "v2.0.0", owns),
		packageOf("unhealthy", "v1.0.0", owns), packageOf("empty", "v1.0.0", nil)
	unhealthy.SetConditions(metav1.Time{}, v1.Unhealthy("it crashes"))
	waiting := &v1.Provider{}
	waiting.Name, waiting.Spec.Package = "waiting", "registry.example.org/waiting:v1.0.0"
	tree := newPackageTree(&inventory.Inventory{
		Packages: []v1.Package{listed, changed, unhealthy, empty, waiting}, Lock: lock,
	})
	var names []string
	for _, p := range tree.setLocked() {
		names = append(names, p.GetName())
	}
	if want := []string{"changed", "unhealthy", "empty"}; !slices.Equal(names, want) {
		t.Errorf("the revisions of %v are read, want %v", names, want)
	}
	n := tree.grow(listed)
	if n.Revision != "listed-1" || n.Version != "v1.0.0" || n.Objects["CustomResourceDefinition"] != 3 ||
		n.Objects["ValidatingWebhookConfiguration"] != 1 {
		t.Errorf("the package in the Lock is %+v", n)
	}
}

// The running revision is the active one, or else the current one.
func TestTheTreeShowsRunningRevisions(t *testing.T) {
	revisionOf := func(name string, state v1.RevisionState) *v1.ProviderRevision {
		rev := &v1.ProviderRevision{}
		rev.Name, rev.Labels = name, map[string]string{v1.LabelPackage: "boats"}
		rev.Spec.Image, rev.Spec.DesiredState = "registry.example.org/boats:"+name, state
		rev.Status.ObjectRefs = []v1.TypedReference{{Kind: "CustomResourceDefinition"}, {Kind: "CustomResourceDefinition"}}
		return rev
	}
	for name, tc := range map[string]struct {
		revisions    []*v1.ProviderRevision
		want         string
		wantsUnknown bool
	}{
		"Active": {
			[]*v1.ProviderRevision{revisionOf("v1", v1.RevisionActive), revisionOf("v2", v1.RevisionInactive)}, "v1", true,
		},
		"Current": {
			[]*v1.ProviderRevision{revisionOf("v1", v1.RevisionInactive), revisionOf("v2", v1.RevisionInactive)}, "v2", false,
		},
	} {
		p := &v1.Provider{}
		p.Name, p.Spec.Package, p.Status.CurrentRevision = "boats", "registry.example.org/boats:v2", "v2"
		tree := newPackageTree(&inventory.Inventory{Packages: []v1.Package{p}, Lock: &v1beta1.Lock{}})
		lists, err := inventory.OfEachKind(func(kind string) (v1.PackageRevisionList, error) {
			if kind != v1.ProviderKind {
				return v1.NewPackage(kind).NewRevisionList(), nil
			}
			list := &v1.ProviderRevisionList{}
			for _, rev := range tc.revisions {
				list.Items = append(list.Items, *rev)
			}
			return list, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		tree.setRevisions(tree.setLocked(), lists)
		n := tree.grow(p)
		if n.Revision != tc.want || n.Version != tc.want || n.Objects["CustomResourceDefinition"] != 2 ||
			(len(tree.unknown) == 1) != tc.wantsUnknown {
			t.Errorf("%s: %+v, unknown %v", name, n, tree.unknown)
		}
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
		selected = append(selected, dependency.Dependency{
			Package: "registry.example.org/acme/tides", Constraint: ">=v0.2.0", CRD: kind + ".tides.reef.test/v1",
		})
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
	tree.grow(roots[0]).write(&text, "", "", "")
	for _, want := range []string{"└─ needs " + reefKinds + "\n", "   └─ provider/acme-tides  v0.2.0"} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("there is not one %q in\n%s", want, text.String())
		}
	}
}

// A line names three dependents at most, and the line of a package that was shown above none.
func TestALineOfTheTreeIsShort(t *testing.T) {
	n := &node{
		Kind: v1.ProviderKind, Name: "base", Version: "v1.0.0", Healthy: "True", Reason: inventory.Dependency,
		dependents: "a, b, c and 40 more",
	}
	var text strings.Builder
	dependencyNode{Package: "base", Constraint: ">=v1", Installed: n, Seen: true}.write(&text, "", "", "")
	dependencyNode{Package: "base", Constraint: ">=v1", Installed: n}.write(&text, "", "", "")
	if got, want := text.String(), "needs base >=v1: provider/base  v1.0.0  Healthy=True (see above)\n"+
		"needs base >=v1\n└─ provider/base  v1.0.0  Healthy=True  (installed for a, b, c and 40 more)\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
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
	want := "you requested registry.example.org/acme/need v0.1.0\n└─ registry.example.org/acme/need v0.1.0 needs " +
		reefKinds + "\n"
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
	if strings.Count(text.String(), "\n") != 1 ||
		!strings.Contains(text.String(), "for Spring.tides.reef.test/v1 and Tide") {
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

// A message that several packages have is written once, below the trees, and that of one package in its line.
func TestTheTreeHasTheMessageOfSeveralPackagesOnce(t *testing.T) {
	const wait = "waits for the approval of its permissions"
	child := func(name, message string) dependencyNode {
		return dependencyNode{Package: name, Installed: &node{
			Kind: "Provider", Name: name, Version: "v1", Healthy: "False", Message: message, Reason: inventory.Dependency,
			dependents: "root",
		}}
	}
	root := &node{
		Kind: "Configuration", Name: "root", Version: "v1", Healthy: "True", Reason: inventory.Explicit,
		Dependencies: []dependencyNode{child("a", wait), child("b", "crashes"), child("c", wait)},
	}
	var text strings.Builder
	writeTrees(&text, []*node{root})
	want := "configuration/root  v1  Healthy=True\n" +
		"├─ needs a\n│  └─ provider/a  v1  Healthy=False\n" +
		"├─ needs b\n│  └─ provider/b  v1  Healthy=False  crashes\n" +
		"└─ needs c\n   └─ provider/c  v1  Healthy=False\n" +
		"\nprovider/a: " + wait + " (also provider/c)\n"
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}
