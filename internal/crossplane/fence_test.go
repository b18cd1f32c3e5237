package crossplane

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The accounts of a fence are read back from its policy. A policy that another client changed covers none.
func TestFencedAccounts(t *testing.T) {
	first, second := types.NamespacedName{Namespace: "crossplane-system", Name: "crossplane"},
		types.NamespacedName{Namespace: "other", Name: "core"}
	policy, _ := Fence(first, second)
	changed := policy.DeepCopy()
	changed.Spec.MatchConditions[0].Expression = "true"
	for name, c := range map[string]struct {
		objects []client.Object
		want    []types.NamespacedName
	}{
		"no fence":            {nil, nil},
		"two accounts":        {[]client.Object{policy}, []types.NamespacedName{first, second}},
		"a changed condition": {[]client.Object{changed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FencedAccounts(t.Context(), clusterWith(t, true, c.objects...))
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %v and %v, want %v", got, err, c.want)
			}
		})
	}
}
