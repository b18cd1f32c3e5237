package inventory

import (
	"slices"
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// A package is found by its kind and repository under any name, also if ImageConfigs rewrite one of the repositories to
// the other.
func TestInstalledFrom(t *testing.T) {
	of := func(kind, name, image string) v1.Package {
		p := v1.NewPackage(kind)
		p.SetName(name)
		p.PackageSpec().Package = image
		return p
	}
	all := Inventory{
		Packages: []v1.Package{
			of(v1.ProviderKind, "first", "a.test/acme/boats:v1"), of(v1.ProviderKind, "second", "a.test/acme/boats:v2"),
			of(v1.FunctionKind, "greet", "a.test/acme/greet:v1"), of(v1.ConfigurationKind, "cached", "mycoolpkg"),
			of(v1.FunctionKind, "hub", "index.docker.io/hub:v1"),
		},
		rewrites: func(repository string) string {
			return oci.RepositoryLocation(strings.Replace(repository, "public.test/", "a.test/", 1))
		},
	}
	for _, tc := range []struct{ kind, name, image, want string }{
		{v1.ProviderKind, "acme-boats", "a.test/acme/boats:v3", "first"},
		{v1.ProviderKind, "second", "a.test/acme/boats:v3", "second"},
		{v1.ProviderKind, "acme-boats", "public.test/acme/boats@sha256:" + strings.Repeat("1", 64), "first"},
		{v1.ProviderKind, "acme-boats", "A.test/acme/boats", "first"},
		{v1.FunctionKind, "library-hub", "docker.io/library/hub:v1", "hub"},
		{v1.FunctionKind, "acme-boats", "a.test/acme/boats:v1", ""},
		{v1.ProviderKind, "first", "b.test/acme/boats:v1", ""},
		{v1.ConfigurationKind, "other", "mycoolpkg", "cached"},
		{v1.ConfigurationKind, "other", "mycoolpkg-v2", ""},
	} {
		got := ""
		if p := all.InstalledFrom(of(tc.kind, tc.name, tc.image)); p != nil {
			got = p.GetName()
		}
		if got != tc.want {
			t.Errorf("%s %s from %s: got %q, want %q", tc.kind, tc.name, tc.image, got, tc.want)
		}
	}
}

// The package of a repository and its dependents are found in all spellings of the repository.
func TestAnInventoryComparesRepositories(t *testing.T) {
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	p, user := v1.NewPackage(v1.ProviderKind), v1.NewPackage(v1.ConfigurationKind)
	p.SetName("hub")
	p.PackageSpec().Package = "index.docker.io/hub:v1" + digest
	user.SetName("user")
	user.PackageSpec().Package = "a.test/user:v1"
	all := Inventory{Packages: []v1.Package{p, user}, Lock: &v1beta1.Lock{Packages: []v1beta1.LockPackage{{
		Name: "user-1", Source: "a.test/user", Version: "v1",
		Dependencies: []v1beta1.Dependency{{Package: "docker.io/library/hub"}},
	}}}}
	for _, spelling := range []string{"index.docker.io/hub", "docker.io/hub", "docker.io/library/hub", "Docker.io/hub"} {
		if all.FromRepository(spelling) != p {
			t.Errorf("%s is not installed", spelling)
		}
	}
	if got := all.Dependents(p); !slices.Equal(got, []string{"configuration/user"}) {
		t.Errorf("the dependents are %v", got)
	}
}
