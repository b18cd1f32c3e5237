package firstgen

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestARecordListsRequiredKindsAndPackages(t *testing.T) {
	got := requirements(xpkg.Meta{
		Kinds: []dependency.KindRef{{Name: "things", Group: "a.example.org", Version: "v1"}, {
			Name: "*", Group: "b.example.org",
		}},
		DependsOn: []dependency.Dependency{
			{Package: "registry.example.org/exact", Constraint: "v1.2.3"},
			{Package: "registry.example.org/range", Constraint: ">=v1.0.0"},
			{Package: "registry.example.org/any"},
			{Package: "registry.example.org/optional", Optional: true},
		},
	})
	want := []packagesv1alpha1.InstallSpec{
		{CRD: "things.a.example.org/v1"}, {CRD: "*.b.example.org"},
		{Package: "registry.example.org/exact:v1.2.3"}, {Package: "registry.example.org/range"},
		{Package: "registry.example.org/any"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
