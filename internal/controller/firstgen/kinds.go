package firstgen

import (
	"context"
	"encoding/json"
	"strings"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Kinds chooses a package for a kind of resource.
type Kinds interface {
	// Choose returns the reference of the package that defines a CRD.
	Choose(ctx context.Context, crd firstgen.CRDReference) (reference string, err error)
}

// installedWith returns the active revision of a Provider that has a CRD, or nil.
func (b *Base) installedWith(ctx context.Context, ref firstgen.CRDReference) v1.PackageRevision {
	for _, rev := range watch.Revisions(ctx, b.API.Client, v1.ProviderKind) {
		if !revision.IsActive(rev) {
			continue
		}
		for _, o := range revision.Objects(rev) {
			plural, group, ok := strings.Cut(o.Name, ".")
			if ok && o.Kind == plan.DefinitionKind && group == ref.Group && (ref.Plural == "*" || ref.Plural == plural) {
				return rev
			}
		}
	}
	return nil
}

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
