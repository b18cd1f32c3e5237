package packageapi

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// specs compares live CRDs with the specs that the manager writes. Another program may overwrite
// the spec of a CRD and keep its annotations and field managers, so a comparison of the metadata is
// not enough.
type specs struct {
	desired map[plan.Ref]any
	// accepted holds the specs that the API server returned after a write of this process. They
	// differ from the desired ones if the API server drops fields that it does not support.
	accepted map[plan.Ref]any
}

func newSpecs(set *desired.Objects) (*specs, error) {
	s := &specs{desired: map[plan.Ref]any{}, accepted: map[plan.Ref]any{}}
	for _, ref := range set.Refs() {
		raw, err := set.Content(ref)
		if err != nil {
			return nil, err
		}
		if s.desired[ref], err = specOf(raw); err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s: %w", ref.Name, err)
		}
	}
	return s, nil
}

// isWritten reports whether a live CRD has the content of the manager.
func (s *specs) isWritten(d plan.Desired, o apply.Object) bool {
	if o.Annotations[plan.ContentDigestAnnotation] != d.Digest {
		return false
	}
	live, err := specOf(o.JSON)
	if err != nil {
		return false
	}
	if equality.Semantic.DeepEqual(live, s.desired[d.Ref]) {
		return true
	}
	accepted, known := s.accepted[d.Ref]
	return known && equality.Semantic.DeepEqual(live, accepted)
}

// accept records a live CRD as the result of a write.
func (s *specs) accept(o apply.Object) {
	if live, err := specOf(o.JSON); err == nil {
		s.accepted[o.Ref] = live
	}
}

// specOf returns the spec of a CRD with the defaults of the API server, as a tree of JSON values.
func specOf(raw []byte) (any, error) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.Spec)
	out, err := json.Marshal(d.Spec)
	if err != nil {
		return nil, err
	}
	var tree any
	return tree, json.Unmarshal(out, &tree)
}
