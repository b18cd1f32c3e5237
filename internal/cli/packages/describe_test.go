package packages

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// After a rollback, the content of the running revision is described, and not the content that failed.
func TestDescriptionAfterARollback(t *testing.T) {
	const requested, running, digest = "registry.example.com/boats:v2", "registry.example.com/boats:v1", "sha256:1"
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats", Generation: 2}}
	p.Spec.Package = requested
	p.Status.ResolvedPackage, p.Status.ResolvedDigest, p.Status.CurrentRevision = requested, "sha256:2", "boats-2"
	p.Status.Rollback = &v1.Rollback{From: "boats-2", To: "boats-1", Generation: 2}
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "boats-1"}}
	rev.Spec.DesiredState, rev.Spec.Image, rev.Spec.Digest = v1.RevisionActive, running, digest
	d := describe(&inventory.Inventory{Packages: []v1.Package{p}, Lock: &v1beta1.Lock{}}, p, []v1.PackageRevision{rev})
	if d.Package != requested || d.Running != running || d.Digest != digest || d.Resolved == requested {
		t.Errorf("described as %+v", d)
	}
	var text strings.Builder
	d.write(&text)
	if !strings.Contains(text.String(), "Running:      "+running+" (revision boats-1)\n") {
		t.Errorf("the text does not name the running package:\n%s", text.String())
	}
}

// The message that several conditions and events have is written once, and the manifest in it keeps its lines.
func TestDescriptionKeepsTheLinesOfAManifest(t *testing.T) {
	const message = "the manager lacks permissions. Apply this manifest.\n\napiVersion: v1\nkind: \x1bRole\nrules:\n- verbs: [get]\n"
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
	p.SetConditions(metav1.Time{}, v1.Condition{Type: v1.TypeHealthy, Status: "False", Message: message})
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "boats-1"}}
	rev.Spec.DesiredState = v1.RevisionActive
	rev.SetConditions(metav1.Time{}, v1.Condition{Type: v1.TypeReady, Status: "False", Message: message})
	d := describe(&inventory.Inventory{Packages: []v1.Package{p}, Lock: &v1beta1.Lock{}}, p, []v1.PackageRevision{rev})
	d.Events = []eventView{{Reason: "PermissionMissing", Message: message}}
	var text strings.Builder
	d.write(&text)
	for part, times := range map[string]int{
		"lacks permissions. Apply this manifest.\n": 1,
		"(see above)\n": 2,
		"    apiVersion: v1\n    kind: \\u001bRole\n    rules:\n    - verbs: [get]\n\nConditions of": 1,
		"apiVersion": 1,
	} {
		if got := strings.Count(text.String(), part); got != times {
			t.Errorf("%q is written %d times, want %d, in\n%s", part, got, times, text.String())
		}
	}
}

// Untrusted text of a package is on the line of its field.
func TestDescriptionHasNoLinesOfThePackage(t *testing.T) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "boats-1", Annotations: map[string]string{
		xpkg.AnnotationTitle: "Good\nDigest:       sha256:0", xpkg.AnnotationCategory: "Tools\nMaintainers:  someone else",
	}}}
	rev.Spec.DesiredState = v1.RevisionActive
	rev.SetConditions(metav1.Time{}, v1.Condition{
		Type: v1.TypeHealthy, Status: "False", Message: "broken\nDigest:       sha256:0",
	})
	var text strings.Builder
	describe(&inventory.Inventory{Packages: []v1.Package{p}, Lock: &v1beta1.Lock{}}, p, []v1.PackageRevision{rev}).
		write(&text)
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "Digest:") || strings.HasPrefix(line, "Maintainers:") {
			t.Errorf("the package added the line %q", line)
		}
	}
	if !strings.Contains(text.String(), "Good Digest:") {
		t.Errorf("the title is missing:\n%s", text.String())
	}
}

func TestADescriptionNamesTheKindsOfADependency(t *testing.T) {
	const tides = "registry.example.com/tides"
	p, by := &v1.Provider{}, &v1.Provider{}
	p.Name, p.Spec.Package = "reefs", "registry.example.com/reefs:v1"
	by.Name, by.Spec.Package = "acme-tides", tides+":v2"
	graph.SetKindProviders(p, []dependency.Dependency{{Package: tides, CRD: "Tide.reef.test"}, {
		Package: tides, CRD: "Wave.reef.test",
	}})
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "reefs-1"}}
	rev.Spec.DesiredState, rev.Spec.Image = v1.RevisionActive, p.Spec.Package
	d := describe(&inventory.Inventory{Packages: []v1.Package{p, by}, Lock: &v1beta1.Lock{}}, p, []v1.PackageRevision{rev})
	if want := tides + " for Tide.reef.test and Wave.reef.test: provider/acme-tides v2"; len(d.Dependencies) != 1 ||
		!strings.HasPrefix(d.Dependencies[0].String(), want) {
		t.Errorf("got %v, want %s", d.Dependencies, want)
	}
}

// An object of the first generation is described under the name that the list prints: an install object as the package
// that it uses, and a Package of a user as itself.
func TestObjectsOfTheFirstGenerationAreDescribedByTheirNames(t *testing.T) {
	cluster := firstGenerationCluster(t, interceptor.Funcs{})
	all, err := inventory.LoadPackages(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	installs := frontend.Installs(firstgen.Frontend().All(t.Context(), cluster))
	for name, want := range map[inventory.Name]string{
		"boats": "provider/boats", "packageinstall/team/mine": "provider/boats",
		"ClusterPackageInstall/team/boats": "provider/boats",
		"package/team/redis":               "package/team/redis", "package/team/boats": "package/team/boats",
		"clusterpackageinstall/team/rafts": "has no package: ClusterPackageInstall team/rafts Ready=False AmbiguousKind",
		"packageinstall/team/none":         "packageinstall/team/none does not exist",
		"package/team/none":                "package/team/none does not exist",
		"mine":                             "PackageInstall team/mine Ready=True Available",
	} {
		o, err := described(testEnv(t), cluster, all, name, installs)
		switch {
		case err == nil && inventory.ShortName(o) != want:
			t.Errorf("%s: the object %s, want %s", name, inventory.ShortName(o), want)
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if name == "mine" && !strings.Contains(errcode.From(err).Do, "provider/boats") {
			t.Errorf("the advice is %q", errcode.From(err).Do)
		}
		if isName := inventory.IsObjectName(name); isName != strings.Contains(string(name), "/") {
			t.Errorf("%s is the name of an object of the first generation: %t", name, isName)
		}
	}
}

func TestAPackageOfAUserIsDescribed(t *testing.T) {
	cluster := firstGenerationCluster(t, interceptor.Funcs{})
	o, err := inventory.ReadObject(t.Context(), cluster, firstgen.Frontend(), "package/team/redis")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	describeObject(t.Context(), cluster, firstgen.Frontend(), o).write(&out)
	for _, part := range []string{
		"Name:         package/team/redis", "Package:      redis/controller:v2", "Title:        Redis",
		"Category:     Databases",
		"Ready=False Creating", "RedisCluster of redis.example.org/v1",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the description lacks %q:\n%s", part, out.String())
		}
	}
	if strings.Contains(out.String(), "Revisions") {
		t.Errorf("the description has revisions:\n%s", out.String())
	}
}
