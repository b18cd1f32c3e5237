package desired

import (
	"encoding/json"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// Composites returns the kinds that the CompositeResourceDefinitions among the objects define. It reads each of them
// completely.
func (o *Objects) Composites() (map[plan.Ref]rbac.Composite, error) {
	out := map[plan.Ref]rbac.Composite{}
	for _, d := range o.want {
		if d.Ref.Kind != compositeKind {
			continue
		}
		raw, err := o.Content(d.Ref)
		if err != nil {
			return nil, err
		}
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
			return nil, fmt.Errorf("%s %s: %w", d.Ref.Kind, d.Ref.Name, err)
		}
		s := definition.Spec
		out[d.Ref] = rbac.Composite{Name: d.Ref.Name, Group: s.Group, Plural: s.Names.Plural, Claim: s.ClaimNames.Plural}
	}
	return out, nil
}
