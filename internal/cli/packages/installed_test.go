package packages

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// An install finds the installed package in all spellings of its reference, whether the package is pinned to a digest
// or not. It never installs the repository under a second name.
func TestInstallFindsThePackageInAllSpellings(t *testing.T) {
	digest, other := "@sha256:"+strings.Repeat("a", 64), "@sha256:"+strings.Repeat("b", 64)
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	spellings := map[string][]string{
		"xpkg.test/acme/boats":     {"xpkg.test/acme/boats", "XPKG.test/acme/boats", "xpkg.test./acme/boats"},
		"index.docker.io/acme/gig": {"index.docker.io/acme/gig", "docker.io/acme/gig", "acme/gig"},
	}
	const unchanged, update, use = "", "Update it with `xpkg update ", "a second package cannot have the same objects"
	for installed, requests := range map[string]map[string]string{
		":v1" + digest: {
			":v1": unchanged, ":v1" + digest: unchanged, digest: unchanged, ":v1" + other: update, other: update, ":v2": update,
			":v2" + digest: update,
		},
		":v1": {":v1": unchanged, ":v1" + digest: unchanged, digest: unchanged, ":v1" +
			other: update, other: update, ":v2": update},
		digest: {":v1": update, ":v1" + digest: update, digest: unchanged, other: update},
	} {
		for repository, names := range spellings {
			for _, kind := range v1.PackageKinds() {
				live := v1.NewPackage(kind)
				live.SetName("boats")
				live.PackageSpec().Package = repository + installed
				live.PackageStatus().CurrentIdentifier, live.PackageStatus().ResolvedDigest = repository+installed, digest[1:]
				all, err := inventory.LoadNamed(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).Build())
				if err != nil {
					t.Fatal(err)
				}
				for version, want := range requests {
					for _, spelling := range names {
						for _, name := range []string{"", "boats", "rafts"} {
							args := installArgs{Kind: inventory.Kind(kind), Ref: spelling + version, Name: name}
							asked, err := args.object()
							if err != nil {
								t.Fatal(err)
							}
							found, err := args.findInstalled(all, asked)
							expected := want
							if expected == unchanged && name == "rafts" {
								expected = use
							}
							if expected != unchanged {
								if !errors.Is(err, operation.ErrInstalledOtherwise) || !strings.Contains(errcode.Message(err), expected) {
									t.Errorf(
										"%s %s as %q, installed as %s: got %v, want %q", kind, args.Ref, name, live.PackageSpec().Package, err,
										expected,
									)
								}
								continue
							}
							if err != nil || found == nil || asked.GetName() != "boats" {
								t.Errorf(
									"%s %s as %q, installed as %s: found %v, %v", kind, args.Ref, name, live.PackageSpec().Package, found, err,
								)
							}
						}
					}
				}
			}
		}
	}
}

// The tag of a package that is pinned to a digest keeps the digest, and every other version replaces the reference.
func TestAnUpdateToTheInstalledTagKeepsTheDigest(t *testing.T) {
	digest, other := "@sha256:"+strings.Repeat("a", 64), "@sha256:"+strings.Repeat("b", 64)
	const repository = "xpkg.test/acme/boats"
	for _, c := range []struct{ is, to, want string }{
		{":v1" + digest, "v1", ":v1" + digest},
		{":v1" + digest, "XPKG.test/acme/boats:v1", ":v1" + digest},
		{":v1" + digest, digest[1:], ":v1" + digest},
		{":v1" + digest, "v2", ":v2"},
		{":v1" + digest, "v1" + other, ":v1" + other},
		{":v1", "v1" + digest, ":v1" + digest},
		{digest, "v1", ":v1"},
	} {
		p := v1.NewPackage(v1.ProviderKind)
		p.PackageSpec().Package = repository + c.is
		if err := moveTo(p, c.to); err != nil || p.PackageSpec().Package != repository+c.want {
			t.Errorf("%s to %s: got %s, %v", c.is, c.to, p.PackageSpec().Package, err)
		}
	}
}
