package packages

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A CRD that no package holds can be adopted, unless its group is reserved: no package may define it.
func TestAReservedKindIsNotAdopted(t *testing.T) {
	for group, adopt := range map[string]bool{
		"pkg.crossplane.io": false, "apiregistration.k8s.io": false, "tides.reef.test": true,
	} {
		kind := dependency.KindRef{Name: "Provider", Group: group}
		held := state.HeldKind{
			ServedKind: apply.ServedKind{Kind: "Provider", Plural: "providers", Versions: []string{"v1"}}, Group: group,
		}
		_, err := checkHolder(nil, held, kind)
		if !errors.Is(err, provide.ErrKindHeld) || strings.Contains(errcode.Message(err), "--adopt") != adopt {
			t.Errorf("%s: %v", kind, errcode.Message(err))
		}
	}
}

func TestACachedPackageIsInstalledWithoutItsRegistry(t *testing.T) {
	for name, c := range map[string]struct {
		policy corev1.PullPolicy
		source string
		is     bool
	}{
		"from the cache":     {"", content.CacheSource, true},
		"from an index":      {"", "index", false},
		"without a registry": {corev1.PullNever, content.CacheSource, false},
	} {
		args := installArgs{PackagePullPolicy: string(c.policy)}
		if is := args.noteCache(c.source) != ""; is != c.is {
			t.Errorf("%s: %t", name, is)
		}
	}
}

// An installed package without its kind in the API server is either of another version, or its definition is not
// established.
func TestAnInstalledPackageWithoutItsKind(t *testing.T) {
	const repository = "xpkg.test/acme/lib"
	first := provide.Candidate{Repository: repository, Version: "v2.0.0", Kind: "Lib", Group: "acme.test", Plural: "libs"}
	for name, c := range map[string]struct {
		reference string
		holders   map[string]string
		text      string
		update    bool
	}{
		"another version": {repository + ":v1.0.0", nil, "provides Lib.acme.test only in another version", true},
		"held by another package": {
			repository + ":v1.0.0", map[string]string{"libs.acme.test": "xpkg.test/acme/other"},
			"provides Lib.acme.test only in another version", true,
		},
		"not established": {
			repository + ":v1.0.0", map[string]string{"libs.acme.test": repository},
			"defines Lib.acme.test, and the API server does not serve it yet", false,
		},
		"a claim": {
			repository + ":v2.0.0", map[string]string{"xlibs.acme.test": repository},
			"defines Lib.acme.test, and the API server does not serve it yet", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := v1.NewPackage(v1.ConfigurationKind)
			p.SetName("acme-lib")
			p.PackageSpec().Package = c.reference
			err := installedWithout(p, provide.Ranking{Kind: first.KindRef(""), Order: []provide.Candidate{first}}, c.holders)
			message := errcode.Message(err)
			if !errors.Is(err, provide.ErrKindHeld) ||
				!strings.Contains(message, "configuration/acme-lib, which is installed, "+c.text) ||
				strings.Contains(message, "xpkg update") != c.update {
				t.Error(message)
			}
		})
	}
}
