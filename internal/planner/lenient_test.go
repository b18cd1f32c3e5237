package planner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A plan names what the lenient policy accepts, in a bounded list.
func TestPlanNamesWhatTheLenientPolicyAccepts(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/lenient:v1"
	stream := provider("lenient", "", crd("lenient.test", "Thing", "one"))
	for i := range 12 {
		stream += fmt.Sprintf(
			"---\napiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: extra-%02d}\n", i,
		)
	}
	s.put(ref, stream)
	p := env.NewProvider("lenient", ref)
	if _, err := fakePlanner(t, s).Install(t.Context(), p, planner.Options{}); !errors.Is(err, xpkg.ErrObjectNotAllowed) {
		t.Fatalf("strict: %v", err)
	}
	p.Annotations = map[string]string{revision.AnnotationContentPolicy: "Lenient"}
	got, err := fakePlanner(t, s).Install(t.Context(), p, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var accepted []string
	for _, w := range got.Warnings {
		if strings.HasPrefix(w, "Accepted: ") {
			accepted = append(accepted, w)
		}
	}
	if len(accepted) != 11 || !strings.Contains(accepted[0], "ObjectNotAllowed") ||
		!strings.Contains(accepted[0], "extra-00") || !strings.Contains(accepted[10], "2 more") {
		t.Errorf("got %q", accepted)
	}
}
