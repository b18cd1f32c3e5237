package firstgen

import (
	"encoding/json"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// definedKinds returns the served kinds that the CRDs of a package define, in the order of the package.
func definedKinds(pkg *xpkg.Package) ([]packagesv1alpha1.Kind, error) {
	var out []packagesv1alpha1.Kind
	for _, o := range pkg.Objects {
		if o.GVK.Kind != plan.DefinitionKind {
			continue
		}
		text, err := o.JSON()
		if err != nil {
			return nil, err
		}
		var crd struct {
			Spec struct {
				Group string
				Names struct{ Kind string }
				// Version is set in CRDs of v1beta1.
				Version  string
				Versions []struct {
					Name   string
					Served bool
				}
			}
		}
		if err := json.Unmarshal(text, &crd); err != nil {
			return nil, err
		}
		s := crd.Spec
		for _, v := range s.Versions {
			if v.Served {
				out = append(out, packagesv1alpha1.Kind{APIVersion: s.Group + "/" + v.Name, Kind: s.Names.Kind})
			}
		}
		if len(s.Versions) == 0 && s.Version != "" {
			out = append(out, packagesv1alpha1.Kind{APIVersion: s.Group + "/" + s.Version, Kind: s.Names.Kind})
		}
	}
	return out, nil
}
