package crd

import (
	"encoding/json"
	"errors"
	"fmt"

	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// FromMRD returns the canonical JSON of the CRD that a ManagedResourceDefinition in JSON defines, with its metadata.
func FromMRD(text []byte) ([]byte, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil {
		return nil, fmt.Errorf("cannot decode: %w", err)
	}
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return nil, errors.New("it has no spec")
	}
	delete(spec, "connectionDetails")
	delete(spec, "state")
	object["apiVersion"], object["kind"] = crdv1.SchemeGroupVersion.String(), kinds.CRD
	out, err := json.Marshal(object)
	return canonical.Normalize(out), err
}
