package packages

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A CRD that no package holds can be adopted, unless its group is reserved: no package may define it.
func TestAReservedKindIsNotAdopted(t *testing.T) {
	for group, adopt := range map[string]bool{"pkg.crossplane.io": false, "apiregistration.k8s.io": false, "tides.reef.test": true} {
		kind := dependency.KindRef{Name: "Provider", Group: group}
		held := state.HeldKind{ServedKind: apply.ServedKind{Kind: "Provider", Plural: "providers", Versions: []string{"v1"}}, Group: group}
		_, err := checkHolder(nil, held, kind)
		if !errors.Is(err, provide.ErrKindHeld) || strings.Contains(errcode.Message(err), "--adopt") != adopt {
			t.Errorf("%s: %v", kind, errcode.Message(err))
		}
	}
}

func TestACachedPackageIsInstalledWithoutItsRegistry(t *testing.T) {
	for name, c := range map[string]struct {
		args   installArgs
		code   errcode.Code
		advice bool
	}{
		"from the cache":     {installArgs{Ref: "xpkg.test/acme/tides:v1", requiredKindFlag: requiredKindFlag{cached: true}}, remote.ErrRegistryUnavailable, true},
		"from an index":      {installArgs{Ref: "xpkg.test/acme/tides:v1"}, remote.ErrRegistryUnavailable, false},
		"without a registry": {installArgs{PackagePullPolicy: string(corev1.PullNever), requiredKindFlag: requiredKindFlag{cached: true}}, remote.ErrRegistryUnavailable, false},
		"another failure":    {installArgs{requiredKindFlag: requiredKindFlag{cached: true}}, ErrPlanWrite, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.args.adviseCache(c.code.New(nil, "it fails"))
			if !errors.Is(err, c.code) || strings.Contains(errcode.Message(err), "contains xpkg.test/acme/tides:v1: to install it without its registry, add --package-pull-policy Never.") != c.advice {
				t.Error(errcode.Message(err))
			}
		})
	}
}
