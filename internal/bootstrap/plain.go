package bootstrap

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// Plain returns an object as written in a manifest: without a status.
func Plain(o Object) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
	}
	delete(out, "status")
	return out, nil
}
