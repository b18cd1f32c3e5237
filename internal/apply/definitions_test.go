package apply

import (
	"testing"
	"testing/synctest"

	"github.com/xpkg-dev/xpkg/internal/pause"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Shared reads are used for a group if no definition was written in it a short time ago.
func TestGroupsAreQuietSomeTimeAfterAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w definitionWrites
		both, other := map[string]bool{"a.example.org": true, "b.example.org": true}, map[string]bool{"b.example.org": true}
		w.record(plan.Ref{Kind: "Composition", Name: "things.a.example.org"})
		if !w.isQuiet(both) {
			t.Error("a Composition counts as a definition")
		}
		for _, kind := range []string{plan.DefinitionKind, kindXRD} {
			w.record(plan.Ref{Kind: kind, Name: "things.a.example.org"})
			if w.isQuiet(both) || !w.isQuiet(other) {
				t.Errorf("after the write of a %s: %t and %t, want false and true", kind, w.isQuiet(both), w.isQuiet(other))
			}
			_ = pause.For(t.Context(), establishing)
			if !w.isQuiet(both) {
				t.Errorf("%s after the write of a %s, the group is not quiet", establishing, kind)
			}
		}
	})
}
