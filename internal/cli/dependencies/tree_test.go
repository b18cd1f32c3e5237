package dependencies

import (
	"strings"
	"testing"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
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
