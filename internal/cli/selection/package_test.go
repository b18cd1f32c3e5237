package selection

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/inventory"
)

// A reference selects the package of its repository in all spellings of the repository.
func TestPackageOfARepository(t *testing.T) {
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("hub")
	p.PackageSpec().Package = "index.docker.io/hub:v1"
	all := &inventory.Inventory{Packages: []v1.Package{p}}
	for _, spelling := range []string{"index.docker.io/hub", "docker.io/hub", "docker.io/library/hub", "Docker.io/hub"} {
		if found, err := Package(all, inventory.Target{Ref: spelling + ":v2"}); found != p {
			t.Errorf("%s: found %v, %v", spelling, found, err)
		}
	}
}
