package activation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A Kind is a kind that a Provider offers.
type Kind struct {
	// Name is the name of its CRD, such as buckets.s3.aws.upbound.io.
	Name string
	schema.GroupKind
	// Managed reports whether it is a managed resource. Only these can be inactive.
	Managed bool
}

// OfferedBy returns the kinds that a Provider offers, in the order of its content. Other packages offer none.
func OfferedBy(pkg *xpkg.Package) ([]Kind, error) {
	if pkg.Meta.Kind != xpkg.Provider {
		return nil, nil
	}
	var out []Kind
	for _, o := range pkg.Objects {
		if o.GVK.Kind != plan.DefinitionKind {
			continue
		}
		definitions, err := o.Definitions()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", o.Name, err)
		}
		for _, d := range definitions {
			out = append(out, Kind{o.Name, schema.GroupKind{Group: d.Group, Kind: d.Kind}, d.Managed})
		}
	}
	return out, nil
}
