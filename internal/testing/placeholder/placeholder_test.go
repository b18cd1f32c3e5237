package placeholder

import (
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	for message, want := range map[string][]string{
		"List it with `xpkg update NAME VERSION`.":           {"NAME"},
		"Run `xpkg approve KIND/NAME`.":                      {"KIND"},
		"Run `xpkg plan … --out plan.json`.":                 {"…"},
		"Write `xpkg update <name> [<ref>]`.":                nil,
		"Pass --ca-file HOST=FILE.":                          {"HOST"},
		"Run `kubectl get pods --namespace NAMESPACE`.":      {"NAMESPACE", "NAMESPACE"},
		"Run `export KUBECONFIG=/data/kubeconfig`.":          nil,
		"Set --kubeconfig or KUBECONFIG, as in `xpkg list`.": nil,
		"Save the file as UTF-8.":                            nil,
		"Run `xpkg update provider/boats v2.0.0`.":           nil,
	} {
		if got := Find(message); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
}
