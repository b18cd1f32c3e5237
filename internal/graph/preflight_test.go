package graph

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// A package that holds the objects of a dependency can be that dependency from another repository: the refusal names the command that
// installs it from the required one.
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
