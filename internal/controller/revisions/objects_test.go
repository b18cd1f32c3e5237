package revisions

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// An object that another client has changed is not recorded as written before it is: a write that fails is
// repeated.
func TestAChangedObjectIsRecordedOnlyWhenItIsWritten(t *testing.T) {
	crd := plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "things.example.org"}
	hook := plan.Ref{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: "hook"}
	live := map[plan.Ref]plan.Live{crd: {Ref: crd, UID: "new", Generation: 3}}
	reference := func(generation int64) []v1.TypedReference {
		return []v1.TypedReference{typedReference(crd, plan.Written{UID: "new", Generation: generation})}
	}
	content := plan.Plan{Changes: []plan.Change{{Ref: crd, Action: plan.Correct}}}
	for name, tc := range map[string]struct {
		live  map[plan.Ref]plan.Live
		known map[plan.Ref]plan.Written
		plan  plan.Plan
		want  []v1.TypedReference
	}{
		"Unchanged":        {live, nil, plan.Plan{}, reference(3)},
		"MetadataOnly":     {live, nil, plan.Plan{Changes: []plan.Change{{Ref: crd, MetadataOnly: true}}}, reference(3)},
		"ChangedByAnother": {live, map[plan.Ref]plan.Written{crd: {UID: "new", Generation: 2}}, content, reference(2)},
		"CreatedByAnother": {live, map[plan.Ref]plan.Written{crd: {UID: "old", Generation: 7}}, content, reference(0)},
		"NeverWritten":     {live, nil, content, reference(0)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plannedRefs([]plan.Ref{crd}, tc.live, tc.known, tc.plan)); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
	got := plannedRefs([]plan.Ref{crd, hook}, live, nil, plan.Plan{Changes: []plan.Change{{Ref: hook, Action: plan.Create}}})
	if diff := cmp.Diff(reference(3), got); diff != "" {
		t.Errorf("with a new webhook configuration (-want +got):\n%s", diff)
	}
}
