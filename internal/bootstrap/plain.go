package bootstrap

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// Plain gives an object as one writes it down: without a status, which is never
// anybody's wish.
func Plain(o Object) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
	}
	delete(out, "status")
	return out, nil
}
