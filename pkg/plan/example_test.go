package plan_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

func ExampleEstablish() {
	yes := true
	composition := func(name string) plan.Ref {
		return plan.Ref{APIVersion: "apiextensions.crossplane.io/v1", Kind: "Composition", Name: name}
	}
	who := plan.Requester{
		Revision: plan.Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "ConfigurationRevision", Name: "platform-1"},
		Package:  plan.Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "Configuration", Name: "platform"},
	}
	want := []plan.Desired{{Ref: composition("network"), Digest: "sha256:1"}, {
		Ref: composition("cluster"), Digest: "sha256:2",
	}}
	live := map[plan.Ref]plan.Live{}
	for _, change := range plan.Establish(want, live, nil, who).Changes {
		fmt.Println(change.Action, change.Ref.Name)
	}

	// An object of another package refuses the whole plan.
	live[composition("network")] = plan.Live{Ref: composition("network"), Owners: []metav1.OwnerReference{
		{APIVersion: "pkg.crossplane.io/v1", Kind: "ConfigurationRevision", Name: "other-1", Controller: &yes},
	}}
	for _, refusal := range plan.Establish(want, live, nil, who).Refusals {
		fmt.Println("refused:", refusal.Reason)
	}
	// Output:
	// create cluster
	// create network
	// refused: Composition network belongs to ConfigurationRevision/other-1
}
