package operation

import (
	"testing"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
)

// The progress of a transaction has the place of the package that it waits for.
func TestProgressCountsThePackagesOfATransaction(t *testing.T) {
	var s v1alpha1.TransactionStatus
	for _, name := range []string{"boats", "boats-2", "ships"} {
		s.Packages = append(s.Packages, v1alpha1.ChangedPackage{PackageName: v1alpha1.PackageName{
			Kind: "Provider", Name: name,
		}})
	}
	for message, want := range map[string]string{
		"writing the packages": "", "provider/boats: waiting for the runtime": "1 of 3: ",
		"waiting for provider/boats-2 from r/boats:v2": "2 of 3: ",
		"installing provider/ships from r/ships:v1":    "3 of 3: ",
	} {
		if s.Message = message; place(s) != want {
			t.Errorf("%s: %q, want %q", message, place(s), want)
		}
	}
}
