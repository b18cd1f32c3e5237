package apply_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// An XRD that Crossplane core keeps is a holder for its composite resources and its claims, as far as they exist.
// Without them, it is one for its finalizers.
func TestHoldersOfAnXRD(t *testing.T) {
	const (
		xrds = "/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions"
		crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		xrd  = `{"metadata": {"name": "fleets.holders.test", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["defined.test"]},
			"spec": {"group": "holders.test", "claimNames": {"plural": "ships"}}}`
		none      = `{"items": []}`
		two       = `{"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}`
		inProcess = `{"items": [{"metadata": {"name": "a", "namespace": "sea", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["hold.test"]}}]}`
	)
	crd := func(plural string) reply {
		return answers(http.StatusOK, "application/json", `{"spec": {"group": "holders.test", "names": {"plural": "`+plural+
			`"}, "versions": [{"name": "v1", "served": true}]}}`)
	}
	kept := apply.Holder{
		Resource: "compositeresourcedefinitions.apiextensions.crossplane.io", Name: "fleets.holders.test",
		Finalizers: []string{"defined.test"},
	}
	by := func(resource string, remaining int) apply.Holder {
		h := kept
		h.Defines, h.Remaining = resource, remaining
		return h
	}
	for name, tc := range map[string]struct {
		fleets, ships string
		want          []apply.Holder
	}{
		"composite resources": {two, none, []apply.Holder{by("fleets.holders.test", 2)}},
		"claims":              {none, two, []apply.Holder{by("ships.holders.test", 2)}},
		"finalizers": {inProcess, none, []apply.Holder{
			{Resource: "fleets.holders.test", Namespace: "sea", Name: "a", Finalizers: []string{"hold.test"}},
			by("fleets.holders.test", 1),
		}},
		"nothing": {none, none, []apply.Holder{kept}},
	} {
		t.Run(name, func(t *testing.T) {
			json := func(body string) reply { return answers(http.StatusOK, "application/json", body) }
			server := &paths{replies: map[string]reply{
				xrds: json(`{"items": [` + xrd + `]}`), xrds + "/fleets.holders.test": json(xrd),
				crds + "/fleets.holders.test": crd("fleets"), crds + "/ships.holders.test": crd("ships"),
				"/apis/holders.test/v1/fleets": json(tc.fleets), "/apis/holders.test/v1/ships": json(tc.ships),
			}}
			c, err := apply.NewCluster(&rest.Config{Host: "http://played.test", Transport: server})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Holders(t.Context(), []plan.Ref{{
				APIVersion: "apiextensions.crossplane.io/v2", Kind: "CompositeResourceDefinition", Name: "fleets.holders.test",
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
