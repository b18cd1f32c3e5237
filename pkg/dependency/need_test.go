package dependency_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

func TestAPackageIsNeededOnceForAllOfItsKinds(t *testing.T) {
	var many []dependency.Dependency
	for i := range 7 {
		many = append(many, dependency.Dependency{Package: "a", CRD: fmt.Sprintf("K%d.x.org", i)})
	}
	for want, all := range map[string][]dependency.Dependency{
		"":            nil,
		"a":           {{Package: "a"}},
		"a >=v1; b":   {{Package: "a", Constraint: ">=v1"}, {Package: "b"}, {Package: "a", Constraint: ">=v1"}},
		"a; a >=v1 ?": {{Package: "a"}, {Package: "a", Constraint: ">=v1", Optional: true}},
		"a >=v1 and <v2 for K.x.org and L.x.org": {
			{Package: "a", Constraint: ">=v1"}, {Package: "a", Constraint: "<v2", CRD: "K.x.org"},
			{Package: "a", Constraint: "<v2", CRD: "L.x.org"}, {Package: "a", CRD: "L.x.org"},
		},
		"a for K0.x.org, K1.x.org, K2.x.org, K3.x.org and 3 more kinds": many,
	} {
		var got []string
		for _, n := range dependency.Needs(all) {
			text := n.String()
			if n.Optional {
				text += " ?"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}
