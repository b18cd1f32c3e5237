package planner

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// A package without a runtime gets no webhook configurations, and those that it has are deleted.
func TestWithoutWebhooks(t *testing.T) {
	owner := plan.Requester{
		Revision: plan.Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "boats-1", UID: "1"},
		Package:  plan.Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "boats", UID: "2"},
	}
	hook := func(name string) plan.Ref {
		return plan.Ref{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: name}
	}
	owned := func(ref plan.Ref, uid string) plan.Live {
		return plan.Live{Ref: ref, UID: "3", Owners: []metav1.OwnerReference{{
			APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "boats-1", UID: owner.Revision.UID,
		}}, ResourceVersion: uid}
	}
	crd := plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: plan.DefinitionKind, Name: "boats.boats.test"}
	live := map[plan.Ref]plan.Live{
		crd: owned(crd, "1"), hook("same"): owned(hook("same"), "2"), hook("other"): owned(hook("other"), "3"),
		hook("foreign"): {Ref: hook("foreign"), UID: "4"},
	}
	refused := plan.Refusal{Ref: hook("foreign")}
	got := withoutWebhooks(plan.Plan{Unchanged: 2, Refusals: []plan.Refusal{refused}, Changes: []plan.Change{
		{Action: plan.Create, Ref: hook("new")}, {Action: plan.Update, Ref: hook("other")},
	}}, live, owner)
	var deleted []string
	for _, c := range got.Changes {
		if c.Action != plan.Delete {
			t.Errorf("there is a change %+v", c)
		}
		deleted = append(deleted, c.Ref.Name)
	}
	if len(deleted) != 2 || deleted[0] != "other" || deleted[1] != "same" {
		t.Errorf("deleted are %q", deleted)
	}
	if got.Unchanged != 1 || len(got.Refusals) != 1 {
		t.Errorf("got %+v", got)
	}
}
