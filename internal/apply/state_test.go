package apply_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

func managedDefinition(name string) plan.Ref {
	return plan.Ref{APIVersion: "apiextensions.crossplane.io/v1alpha1", Kind: "ManagedResourceDefinition", Name: name}
}

// mrd returns a ManagedResourceDefinition with a state, or without any.
func mrd(state string) string {
	spec := map[string]any{"group": "a.test"}
	if state != "" {
		spec["state"] = state
	}
	return encode(map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceDefinition", "spec": spec,
	})
}

// The state in a package is the initial state of a managed resource definition.
// Later an activation policy can change it, unless the package sets Active.
func TestStateOfManagedResourceDefinitions(t *testing.T) {
	tests := []struct{ says, live, want string }{
		{"", "", ""},
		{"", "Inactive", "Inactive"},
		{"", "Active", "Active"},
		{"Inactive", "", "Inactive"},
		{"Inactive", "Inactive", "Inactive"},
		{"Inactive", "Active", "Active"},
		{"Active", "", "Active"},
		{"Active", "Inactive", "Active"},
		{"Active", "Active", "Active"},
	}
	for _, action := range []plan.Action{plan.Update, plan.Adopt, plan.TakeOver, plan.Correct} {
		for _, tc := range tests {
			t.Run(string(action)+"/"+tc.says+" over "+tc.live, func(t *testing.T) {
				var sent []byte
				c, server := play(t, answers(200, "application/json", mrd(tc.live)), func(r *http.Request) (*http.Response, error) {
					sent, _ = io.ReadAll(r.Body)
					return holdsObject(metav1.ObjectMeta{UID: "u"})(r)
				})
				ref := managedDefinition("a")
				p := plan.Plan{Changes: []plan.Change{{Action: action, Ref: ref, UID: "u", ResourceVersion: "1"}}}
				if _, err := c.Run(t.Context(), p, always([]byte(mrd(tc.says)))); err != nil {
					t.Fatal(err)
				}
				var got, want struct {
					Spec map[string]any `json:"spec"`
				}
				if err := json.Unmarshal(sent, &got); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal([]byte(mrd(tc.want)), &want); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
				if len(server.calls) != 2 {
					t.Errorf("calls: %v", server.calls)
				}
			})
		}
	}
}

// A definition that is made, or whose owners alone change, needs no look at the
// live one.
func TestStateIsReadOnlyForChangedSpecs(t *testing.T) {
	for name, ch := range map[string]plan.Change{
		"create":       {Action: plan.Create, Ref: managedDefinition("a")},
		"owners":       {Action: plan.Own, Ref: managedDefinition("a"), MetadataOnly: true, UID: "u"},
		"another kind": {Action: plan.Update, Ref: definition("a"), UID: "u"},
	} {
		c, server := play(t, holdsObject(metav1.ObjectMeta{UID: "u"}))
		if _, err := c.Run(t.Context(), plan.Plan{Changes: []plan.Change{ch}}, always([]byte(mrd("Inactive")))); err != nil {
			t.Fatal(err)
		}
		if len(server.calls) != 1 {
			t.Errorf("%s: calls: %v", name, server.calls)
		}
	}
}

func TestStateThatCannotBeRead(t *testing.T) {
	update := plan.Plan{Changes: []plan.Change{{
		Action: plan.Update, Ref: managedDefinition("a"), UID: "u", ResourceVersion: "1",
	}}}
	c, _ := play(t, statusReply(404, metav1.StatusReasonNotFound))
	if _, err := c.Run(t.Context(), update, always([]byte(mrd("")))); !errors.Is(err, apply.ErrMoved) {
		t.Errorf("a definition that is gone: %v", err)
	}
	for _, content := range []string{`{"spec":[]}`, `{"spec":{"state":1}}`, `{}`} {
		c, server := play(t, answers(200, "application/json", mrd("Active")))
		if _, err := c.Run(t.Context(), update, always([]byte(content))); !errors.Is(err, apply.ErrContent) {
			t.Errorf("content %s: %v", content, err)
		}
		if len(server.calls) != 1 {
			t.Errorf("calls: %v", server.calls)
		}
	}
}
