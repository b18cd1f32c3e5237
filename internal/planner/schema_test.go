package planner

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// The CRDs of the package API are parsed once, not for each package of a plan: parsing takes longer than all the rest.
func TestSchemasOfPackagesAreParsedOnce(t *testing.T) {
	for _, kind := range []string{v1.ProviderKind, v1.ConfigurationKind, v1.FunctionKind} {
		first, err := schemaOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		second, err := schemaOf(kind)
		if err != nil || first != second {
			t.Errorf("%s: the schema was parsed again (%v)", kind, err)
		}
	}
	if _, err := schemaOf("Package"); err == nil {
		t.Error("a kind without a CRD has a schema")
	}
}
