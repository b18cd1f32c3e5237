package web

import (
	"context"
	"fmt"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// kindsView is a view of kinds.
type kindsView struct {
	View
	kinds []catalog.Kind
}

func (v kindsView) Kinds(_ context.Context, _, _ string, limit int) ([]catalog.Kind, error) {
	return v.kinds[:min(len(v.kinds), limit)], nil
}

// Packages of other publishers can have any number of kinds in the group.
func TestTheSchemaOfTheLastKindOfALargeGroupIsFound(t *testing.T) {
	view := kindsView{}
	for i := range 2 * maxGroupKinds {
		view.kinds = append(view.kinds, catalog.Kind{Kind: fmt.Sprintf("A%d", i), Group: "example.org"})
	}
	view.kinds = append(view.kinds, catalog.Kind{Kind: "Boat", Group: "example.org"})
	got, err := kindIgnoringCase(&request{ctx: t.Context(), view: view}, "example.org", "boat")
	if want := [2]string{"example.org", "Boat"}; err != nil || got != want {
		t.Errorf("found %v (%v), want %v", got, err, want)
	}
}
