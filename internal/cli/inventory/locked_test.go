package inventory

import (
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// A package is found by its kind and repository under any name, also if ImageConfigs rewrite one of the repositories to the other.
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
		},
		place: func(repository string) string { return strings.Replace(repository, "public.test/", "a.test/", 1) },
	}
	for _, tc := range []struct{ kind, name, image, want string }{
		{v1.ProviderKind, "acme-boats", "a.test/acme/boats:v3", "first"},
		{v1.ProviderKind, "second", "a.test/acme/boats:v3", "second"},
		{v1.ProviderKind, "acme-boats", "public.test/acme/boats@sha256:" + strings.Repeat("1", 64), "first"},
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
