package activation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/apis/apiextensions/v1alpha1"
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
	// Stated reports that the package states that the kind is active, in a ManagedResourceDefinition.
	Stated bool
	// Definition are its names, scope and versions.
	Definition xpkg.Definition

	object xpkg.Object
}

// OfferedBy returns the kinds that a Provider offers, in the order of its content. Other packages offer none.
func OfferedBy(pkg *xpkg.Package) ([]Kind, error) {
	if pkg.Meta.Kind != xpkg.Provider {
		return nil, nil
	}
	var out []Kind
	for _, o := range pkg.Objects {
		isMRD := o.GVK.Kind == v1alpha1.ManagedResourceDefinitionKind
		if o.GVK.Kind != plan.DefinitionKind && !isMRD {
			continue
		}
		stated := false
		if isMRD {
			var err error
			if stated, err = statesActive(o); err != nil {
				return nil, fmt.Errorf("read %s: %w", o.Name, err)
			}
		}
		definitions, err := o.Definitions()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", o.Name, err)
		}
		for _, d := range definitions {
			out = append(out, Kind{
				Name: o.Name, GroupKind: schema.GroupKind{Group: d.Group, Kind: d.Kind}, Managed: d.Managed || isMRD,
				Stated: stated, Definition: d, object: o,
			})
		}
	}
	return out, nil
}

// statesActive reports whether the state of a ManagedResourceDefinition in a package is Active.
func statesActive(o xpkg.Object) (bool, error) {
	raw, err := o.JSON()
	if err != nil {
		return false, err
	}
	var definition struct {
		Spec struct {
			State string `json:"state"`
		} `json:"spec"`
	}
	err = json.Unmarshal(raw, &definition)
	return definition.Spec.State == v1alpha1.Active, err
}
