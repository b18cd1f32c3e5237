package planner

import (
	"testing"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// TestAProviderOfAnotherRepositoryIsAnotherVersion checks which updates of a shared Provider take its version from a
// PackageInstall.
func TestAProviderOfAnotherRepositoryIsAnotherVersion(t *testing.T) {
	const boats = "registry.example.org/acme/boats"
	live := v1.NewPackage(v1.ProviderKind)
	live.SetName("boats")
	live.PackageSpec().Package = boats + ":v1"
	for name, c := range map[string]struct {
		repository, version string
		lost                bool
	}{
		"the same version":                    {boats, "v1", false},
		"another version":                     {boats, "v2", true},
		"the same version of another package": {"registry.example.org/fork/boats", "v1", true},
	} {
		t.Run(name, func(t *testing.T) {
			in := &frontend.Object{
				Resource: packagesv1alpha1.NewInstall(packagesv1alpha1.PackageInstallKind),
				Facts:    frontend.Facts{Reference: boats + ":v1", Shares: true, Provider: "boats"},
			}
			node := graph.Node{Kind: v1.ProviderKind, Name: "boats", Package: lockfile.Package{
				Repository: c.repository, Version: c.version,
			}}
			out := &Plan{}
			(&Planner{}).start(Options{}).lostVersions([]*frontend.Object{in}, live, node, out)
			if lost := len(out.Breaks) > 0; lost != c.lost {
				t.Errorf("got %+v", out.Breaks)
			}
		})
	}
}
