package apply_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// What a failed plan created is deleted, except for CRDs with custom resources, CRDs that existed before, and CRDs that
// another client has changed.
func TestUndoKeepsObjectsWithOtherOwners(t *testing.T) {
	c := newCluster(t, nil)
	var p plan.Plan
	written := map[plan.Ref]plan.Written{}
	add := func(group string, action plan.Action) plan.Ref {
		t.Helper()
		ref := definition("boats." + group)
		if err := run(t, c, marshal(t, boats(group)), plan.Change{Action: plan.Create, Ref: ref}); err != nil {
			t.Fatal(err)
		}
		live := settled(t, c, ref)
		p.Changes = append(p.Changes, plan.Change{Action: action, Ref: ref})
		written[ref] = plan.Written{UID: live.UID, Generation: live.Generation}
		return ref
	}
	empty := add("empty.undo.test", plan.Create)
	used := add("used.undo.test", plan.Create)
	createBoat(t, "used.undo.test")
	existed := add("existed.undo.test", plan.Adopt)
	changed := add("changed.undo.test", plan.Create)
	w := written[changed]
	w.Generation--
	written[changed] = w
	composition := plan.Ref{APIVersion: "apiextensions.crossplane.io/v1", Kind: "Composition", Name: "boats"}
	p.Changes = append(p.Changes, plan.Change{Action: plan.Create, Ref: composition}, plan.Change{
		Action: plan.Create, Ref: definition("unwritten.undo.test"),
	})
	written[composition] = plan.Written{UID: "u", Generation: 1}

	if diff := cmp.Diff([]plan.Ref{composition, changed, used}, c.Undo(t.Context(), p, written)); diff != "" {
		t.Errorf("remaining objects (-want +got):\n%s", diff)
	}
	live, err := c.Metadata(t.Context(), []plan.Ref{empty, used, existed, changed})
	if err != nil {
		t.Fatal(err)
	}
	if l, exists := live[empty]; exists && !l.Deleting {
		t.Error("the unused CRD remains")
	}
	for _, ref := range []plan.Ref{used, existed, changed} {
		if l, exists := live[ref]; !exists || l.Deleting {
			t.Errorf("%s was deleted", ref.Name)
		}
	}
}

// A dry run finds what the API server rejects, and writes nothing.
func TestDryRunWritesNothing(t *testing.T) {
	c := newCluster(t, nil)
	ref := definition("boats.dry.undo.test")
	p := plan.Plan{Changes: []plan.Change{{Action: plan.Create, Ref: ref}}}
	if _, err := c.DryRun().Run(t.Context(), p, always(marshal(t, boats("dry.undo.test")))); err != nil {
		t.Fatal(err)
	}
	invalid := boats("dry.undo.test")
	invalid.Spec.Versions[0].Storage = false
	if _, err := c.DryRun().Run(t.Context(), p, always(marshal(t, invalid))); !errors.Is(err, apply.ErrRejected) {
		t.Errorf("got %v", err)
	}
	if live, err := c.Metadata(t.Context(), []plan.Ref{ref}); err != nil || len(live) > 0 {
		t.Errorf("the dry run wrote: %v, %v", live, err)
	}
}
