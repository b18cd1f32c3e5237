package planner_test

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// TestPlanNamesTheConcernsAboutNewObjects checks that a plan warns of them once for each kind of concern.
func TestPlanNamesTheConcernsAboutNewObjects(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/names:v1"
	s.put(ref, provider(
		"names", "", crd("a.test", "Provider", "one"), crd("a.test", "Function", "one"), crd("a.test", "Thing", "one"),
	))
	got, err := fakePlanner(t, s).Install(t.Context(), env.NewProvider("names", ref), planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, w := range got.Warnings {
		if strings.HasPrefix(w, "HiddenName: ") {
			found = append(found, w)
		}
	}
	if len(found) != 1 || !strings.Contains(found[0], "providers.a.test") ||
		!strings.Contains(found[0], "functions.a.test") || strings.Contains(found[0], "things") {
		t.Errorf("got %q of %q", found, got.Warnings)
	}
}
