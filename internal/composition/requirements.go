package composition

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
)

func (r Requirement) selector() protocol.Selector {
	s := protocol.Selector{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, MatchName: r.ObjectName}
	if r.ObjectName == "" {
		s.MatchLabels = &protocol.MatchLabels{Labels: r.MatchLabels}
	}
	return s
}

// meet adds the resources and schemas of requirements to a request.
func (p *pipeline) meet(req *protocol.Request, required protocol.Requirements) error {
	for name, selector := range required.ExtraResources {
		req.ExtraResources = with(req.ExtraResources, name, find(p.input.Resources, selector))
	}
	for name, selector := range required.Resources {
		req.RequiredResources = with(req.RequiredResources, name, find(p.input.Resources, selector))
	}
	for name, selector := range required.Schemas {
		found, err := p.schema(selector)
		if err != nil {
			return err
		}
		req.RequiredSchemas = with(req.RequiredSchemas, name, protocol.Schema{OpenAPIV3: found})
	}
	return nil
}

// schema returns the schema of a kind, or nil if it has none.
func (p *pipeline) schema(s protocol.SchemaSelector) (map[string]any, error) {
	if p.input.Schemas == nil {
		return nil, nil
	}
	found, err := p.input.Schemas(schema.FromAPIVersionAndKind(s.APIVersion, s.Kind))
	if err != nil {
		return nil, ErrCompositionInvalid.New(err, "cannot use the schema of %s in %s", s.Kind, s.APIVersion)
	}
	return found, nil
}

// find returns the resources that a selector selects, ordered by namespace and name: one with a name, or all with
// labels.
func find(all []*unstructured.Unstructured, s protocol.Selector) protocol.Resources {
	var out protocol.Resources
	ordered := slices.SortedStableFunc(slices.Values(all), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetNamespace(), b.GetNamespace()))
	})
	for _, o := range ordered {
		if !selects(s, o) {
			continue
		}
		out.Items = append(out.Items, protocol.Resource{Resource: o.Object})
		if s.MatchLabels == nil {
			break
		}
	}
	return out
}

func selects(s protocol.Selector, o *unstructured.Unstructured) bool {
	switch {
	case s.APIVersion != o.GetAPIVersion() || s.Kind != o.GetKind() ||
		s.Namespace != "" && s.Namespace != o.GetNamespace():
		return false
	case s.MatchLabels != nil:
		return labels.SelectorFromSet(s.MatchLabels.Labels).Matches(labels.Set(o.GetLabels()))
	}
	return s.MatchName != "" && s.MatchName == o.GetName()
}
