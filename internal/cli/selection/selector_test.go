package selection

import (
	"errors"
	"slices"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/inventory"
)

// A selector has the syntax of kubectl, and a command that would act on no package fails.
func TestSelectorSelectsByLabels(t *testing.T) {
	var packages []v1.Package
	for name, team := range map[string]string{"aws": "core", "dns": "edge"} {
		p := v1.NewPackage(v1.ProviderKind)
		p.SetName(name)
		p.SetLabels(map[string]string{"team": team})
		packages = append(packages, p)
	}
	for selector, want := range map[string][]inventory.Name{
		"team=core": {"provider/aws"}, "team!=core": {"provider/dns"}, "team": {"provider/aws", "provider/dns"},
		"team in (edge,core)": {"provider/aws", "provider/dns"}, "team=none": nil,
	} {
		selected, err := SelectorFlag{Selector: selector}.Select(packages)
		var got []inventory.Name
		for _, p := range selected {
			got = append(got, inventory.Name(inventory.ShortName(p)))
		}
		if slices.Sort(got); !slices.Equal(got, want) || errors.Is(err, inventory.ErrPackageNotFound) != (want == nil) {
			t.Errorf("%s selects %q (%v), want %q", selector, got, err, want)
		}
	}
	if _, err := (SelectorFlag{Selector: "a=b=c"}).Labels(); !errors.Is(err, terminal.ErrUsage) {
		t.Errorf("an invalid selector fails with %v", err)
	}
}

// Packages are selected by names or by labels, never by both or by none.
func TestSelectorReplacesNames(t *testing.T) {
	for _, tc := range []struct {
		names    int
		selector string
		ok       bool
	}{{1, "", true}, {0, "team=core", true}, {0, "", false}, {2, "team=core", false}} {
		if err := (SelectorFlag{Selector: tc.selector}).Check(tc.names); (err == nil) != tc.ok {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	names := []inventory.Name{"provider/aws"}
	if got, err := (SelectorFlag{}).Names(t.Context(), connection.ClusterFlags{}, names); err != nil ||
		!slices.Equal(got, names) {
		t.Errorf("without a selector: %q, %v", got, err)
	}
}
