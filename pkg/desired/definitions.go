package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Definitions returns CRDs that belong to no package as desired objects of a plan.
func Definitions(all []*apiextensionsv1.CustomResourceDefinition) (*Objects, error) {
	out := newObjects()
	for _, crd := range all {
		raw, err := json.Marshal(crd)
		if err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
		}
		sum := sha256.Sum256(raw)
		out.put(plan.Desired{
			Ref:    plan.Ref{APIVersion: definitionGroup + "/v1", Kind: definitionKind, Name: crd.Name},
			Labels: crd.Labels, Annotations: crd.Annotations, Digest: "sha256:" + hex.EncodeToString(sum[:]),
		}, func() ([]byte, error) { return raw, nil })
	}
	return out, nil
}
