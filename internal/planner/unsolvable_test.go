package planner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// Dependencies without a solution are refused with the same explanation whether or not the dependency is installed. A
// dependency that the user can update to a version that matches is no reason to refuse.
func TestDependenciesWithoutASolutionAreRefused(t *testing.T) {
	s := newFakeContent()
	const at = "registry.example.com/unsolvable/"
	for ref, stream := range map[string]string{
		"mail:v1.0.0": provider("mail", ""), "mail:v2.0.0": provider("mail", ""),
		"never:v1": strings.Replace(needing("never", at+"mail"), "'>=v1'", "'>=v3'", 1),
		"later:v1": strings.Replace(needing("later", at+"mail"), "'>=v1'", "'>=v2'", 1),
	} {
		s.put(at+ref, stream)
	}
	mail := env.NewProvider("mail", at+"mail:v1.0.0")
	absent, installed := fakePlanner(t, s, &v1beta1.Lock{}), fakePlanner(t, s, mail)
	for _, pl := range []*planner.Planner{absent, installed} {
		pl.Registry = s
	}
	_, want := absent.Install(t.Context(), env.NewProvider("never", at+"never:v1"))
	_, got := installed.Install(t.Context(), env.NewProvider("never", at+"never:v1"))
	if !errors.Is(want, solver.ErrUnsolvable) || got == nil || got.Error() != want.Error() {
		t.Errorf("with the dependency %v, and without it %v", got, want)
	}
	p, err := installed.Install(t.Context(), env.NewProvider("later", at+"later:v1"))
	if err != nil || p.Dependencies[0].State != graph.Incompatible {
		t.Fatalf("an update of the dependency is possible: %+v, %v", p, err)
	}
	// The plan needs consent, and names the update that helps.
	const update = "let provider/mail request registry.example.com/unsolvable/mail v2.0.0 instead of v1.0.0"
	if err := p.ConsentError(); !errors.Is(err, graph.ErrDependencyVersion) || !strings.Contains(errcode.From(err).Do, update) {
		t.Errorf("the plan needs consent: %v; %s", err, errcode.From(err).Do)
	}
}
