package planner

import (
	"slices"
	"testing"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
)

// The plan of an uninstall promises a reinstallation only for packages, and for install objects that record a package
// for the kind.
func TestPlanPredictsTheReinstallation(t *testing.T) {
	const repository = "registry.example.org/acme/boats"
	install := packagesv1alpha1.NewInstall(packagesv1alpha1.ClusterPackageInstallKind)
	install.SetNamespace("system")
	install.SetName("boats")
	recorded := install.DeepCopyObject().(packagesv1alpha1.Install)
	recorded.SetAnnotations(map[string]string{
		graph.AnnotationKindProviders: `[{"package":"` + repository + `","constraint":"v1.0.0","crd":"boats.example.org"}]`,
	})
	ofInstall := Broken{Kind: packagesv1alpha1.ClusterPackageInstallKind, Name: "system/boats", Requires: repository}
	ofNamespace := Broken{Kind: packagesv1alpha1.PackageInstallKind, Name: "team/boats", Requires: repository}
	ofPackage := Broken{Kind: v1.ConfigurationKind, Name: "harbor", Requires: repository}
	const suffix = " needs " + repository + ", and it would not be installed."
	harbor := asking("harbor", "registry.example.org/acme/harbor:v1.0.0")
	quay := asking("quay", "registry.example.org/acme/quay:v1.0.0")
	quay.PackageSpec().SkipDependencyResolution = true
	ofSkipping := Broken{Kind: v1.ProviderKind, Name: "quay", Requires: repository}
	for name, tc := range map[string]struct {
		breaks  []Broken
		install packagesv1alpha1.Install
		want    []string
	}{
		"nothing":          {nil, install, nil},
		"a PackageInstall": {[]Broken{ofNamespace}, install, nil},
		"an install object": {[]Broken{ofNamespace, ofInstall}, install, []string{
			"The package manager installs a package again only if its indexes have one for the kind: clusterpackageinstall/system/boats" +
				suffix,
		}},
		"with a record": {[]Broken{ofInstall}, recorded, []string{
			"The package manager installs it again: clusterpackageinstall/system/boats" + suffix,
		}},
		"dependencies that are not resolved": {[]Broken{ofSkipping}, install, nil},
		"a package beside one that skips its own": {[]Broken{ofSkipping, ofPackage}, install, []string{
			"The package manager installs it again: configuration/harbor" + suffix,
		}},
		"a package beside one": {[]Broken{ofInstall, ofPackage}, install, []string{
			"The package manager installs it again: configuration/harbor" + suffix,
		}},
	} {
		p := &Plan{Breaks: tc.breaks}
		if got := p.installedAgain([]v1.Package{harbor, quay}, []*frontend.Object{
			firstgen.Frontend().Of(tc.install),
		}); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
