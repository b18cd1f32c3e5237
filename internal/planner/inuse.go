package planner

import "context"

// InUse returns a function that returns which of some CRDs have custom resources, or may have some.
func InUse(counter interface {
	CustomResources(ctx context.Context, crds []string, identify bool) ([]CustomResources, error)
}) func(context.Context, []string) (map[string]bool, error) {
	return func(ctx context.Context, crds []string) (map[string]bool, error) {
		counts, err := counter.CustomResources(ctx, crds, false)
		out := map[string]bool{}
		for _, c := range counts {
			out[c.CRD] = true
		}
		return out, err
	}
}
