package graph

import (
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// A package that holds the objects of a dependency can be that dependency from another repository: the refusal names
// the command that installs it from the required one.
func TestConflictsNameTheRequiredRepository(t *testing.T) {
	boats := plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: plan.DefinitionKind, Name: "boats.test"}
	change := Change{To: lockfile.Package{Repository: "r.example/acme/boats", Version: "v1.0.0", Kind: "Provider"}}
	for holder, want := range map[string]string{
		"Provider/boats":       "`xpkg update provider/boats r.example/acme/boats:v1.0.0`",
		"Configuration/fleets": "",
		"r.example/acme/rafts": "",
	} {
		holders := plan.Holders{}
		holders.Put(holder, boats)
		got := Conflicts(holders, "Configuration/harbor", nil, []Change{change}, [][]plan.Ref{{boats}})
		if len(got) != 1 || !strings.Contains(got[0].Fix, want) || want == "" && got[0].Fix != "" {
			t.Errorf("%s: got %+v", holder, got)
		}
	}
}

// The content of a package without a status is that of its newest revision with the same reference: it was restored
// without its status, or the status is not written yet.
func TestContentOfAPackageWithoutAStatus(t *testing.T) {
	const image = "r.example/acme/boats:v1.0.0"
	p, first, second := v1.NewPackage(v1.ProviderKind), &v1.ProviderRevision{}, &v1.ProviderRevision{}
	p.PackageSpec().Package = image
	older, newer := oci.DigestOf([]byte("older")), oci.DigestOf([]byte("newer"))
	first.Spec.Image, first.Spec.Digest, first.Spec.Revision = image, older.String(), 1
	second.Spec.Image, second.Spec.Digest, second.Spec.Revision = image, newer.String(), 2
	var asked oci.Digest
	n, ok := NodeFromRevisions(p,
		[]v1.PackageRevision{second, first}, func(_ string, content oci.Digest) []dependency.Dependency {
			asked = content
			return nil
		})
	if !ok || n.Digest != newer || asked != newer {
		t.Errorf("the content is %s, and the dependencies are those of %s; want %s", n.Digest, asked, newer)
	}
	p.PackageStatus().CurrentRevision, p.PackageStatus().CurrentIdentifier = "boats-1", "r.example/acme/boats:v0.9.0"
	if n, _ := NodeFromRevisions(
		p, []v1.PackageRevision{second, first}, func(string, oci.Digest) []dependency.Dependency { return nil },
	); !n.Digest.IsZero() {
		t.Errorf("the content is %s, although the reference was not resolved yet", n.Digest)
	}
}
