package desired

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterScoped reports for each resource that the objects define whether it is cluster-scoped. It reads every CRD
// completely.
func (o *Objects) ClusterScoped() (map[schema.GroupResource]bool, error) {
	out := map[schema.GroupResource]bool{}
	for _, d := range o.want {
		if d.Ref.Kind != definitionKind {
			continue
		}
		raw, err := o.Content(d.Ref)
		if err != nil {
			return nil, err
		}
		var definition struct {
			Spec struct {
				Scope apiextensionsv1.ResourceScope `json:"scope"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(raw, &definition); err != nil {
			return nil, fmt.Errorf("%s %s: %w", d.Ref.Kind, d.Ref.Name, err)
		}
		out[ResourceOf(d.Ref.Name)] = definition.Spec.Scope == apiextensionsv1.ClusterScoped
	}
	return out, nil
}
