package desired

import (
	"encoding/json"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// Composites returns the kinds that the CompositeResourceDefinitions among the objects define. The first call reads
// each of them completely.
func (o *Objects) Composites() (map[plan.Ref]rbac.Composite, error) { return o.composites() }

// ComposedCRDs returns the CRDs that Crossplane creates from the XRDs and MRDs among the objects.
func (o *Objects) ComposedCRDs() ([]plan.Ref, error) {
	composites, err := o.Composites()
	if err != nil {
		return nil, err
	}
	var out []plan.Ref
	for _, d := range o.want {
		names := []string{d.Ref.Name}
		switch d.Ref.Kind {
		case managedKind:
		case compositeKind:
			c := composites[d.Ref]
			if names = []string{c.Plural + "." + c.Group}; c.Claim != "" {
				names = append(names, c.Claim+"."+c.Group)
			}
		default:
			continue
		}
		for _, name := range names {
			out = append(out, plan.Ref{APIVersion: definitionGroup + "/v1", Kind: definitionKind, Name: name})
		}
	}
	return out, nil
}

func (o *Objects) readComposites() (map[plan.Ref]rbac.Composite, error) {
	out := map[plan.Ref]rbac.Composite{}
	for _, d := range o.want {
		if d.Ref.Kind != compositeKind {
			continue
		}
		raw, err := o.Content(d.Ref)
		if err != nil {
			return nil, err
		}
		if out[d.Ref], err = ReadComposite(d.Ref.Name, raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ReadComposite returns the kinds that the JSON of a CompositeResourceDefinition defines.
func ReadComposite(name string, raw []byte) (rbac.Composite, error) {
	type names struct {
		Plural string `json:"plural"`
	}
	var definition struct {
		Spec struct {
			Group      string `json:"group"`
			Names      names  `json:"names"`
			ClaimNames names  `json:"claimNames"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &definition); err != nil {
		return rbac.Composite{}, fmt.Errorf("%s %s: %w", compositeKind, name, err)
	}
	s := definition.Spec
	return rbac.Composite{Name: name, Group: s.Group, Plural: s.Names.Plural, Claim: s.ClaimNames.Plural}, nil
}
