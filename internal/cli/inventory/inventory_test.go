package inventory

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// The error of a missing package suggests similar names: the name in a cluster can differ from
// the name of the repository.
func TestSuggestions(t *testing.T) {
	all := &Inventory{}
	for _, name := range []string{"acme-network", "acme-networks", "other"} {
		all.Packages = append(all.Packages, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	all.Packages = append(all.Packages, &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "acme-greet"}})
	for name, want := range map[string]string{
		"network":              "Did you mean provider/acme-network or provider/acme-networks? ",
		"acme-netwrk":          "Did you mean provider/acme-network or provider/acme-networks? ",
		"function/othr":        "Did you mean provider/other? ",
		"provider/acme-greet":  "Did you mean function/acme-greet? ",
		"something-quite-else": "",
	} {
		_, err := all.Find(Name(name))
		if do := errcode.From(err).Do; !errors.Is(err, ErrPackageNotFound) || do != want+ErrPackageNotFound.Fix {
			t.Errorf("%s: %v, and what to do: %s", name, err, do)
		}
	}
}
