package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A plan reports incompatible packages, and reads optional dependencies from the Lock.
func TestPlansWithOptionalDependencies(t *testing.T) {
	e := env.New(t)
	s := newFakeContent()
	const at = "registry.example.com/optional/"
	works := "  annotations:\n    " + xpkg.AnnotationOptional + ": '[{\"provider\": \"" + at +
		"mail\", \"version\": \"<v2\"}]'\n"
	shop := strings.Replace(provider("shop", ""), "  name: shop\n", "  name: shop\n"+works, 1)
	for ref, stream := range map[string]string{
		"shop:v1": shop, "mail:v1.0.0": provider("mail", "", crd("mail.optional.test", "Letter", "a letter")),
		"mail:v2.0.0": provider("mail", ""),
		"any:v1":      needing("any", at+"mail"), "new:v1": strings.Replace(needing("new", at+"mail"), "'>=v1'", "'>=v2'", 1),
	} {
		s.put(at+ref, stream)
	}
	stop := runManager(t, e.Config, s).Stop
	c, pl := e.Client, newPlanner(t, e.Config, s)
	pl.Registry = s
	installed := env.NewProvider("optional-shop", at+"shop:v1")
	p := install(t, pl, installed)
	want := []planner.Dependency{{
		Package: at + "mail", Constraint: "<v2", State: graph.Absent, Optional: true, Kind: "Provider",
	}}
	if !slices.Equal(p.Dependencies, want) || p.WaitsForDependencies() || len(p.AddedPackages) != 0 {
		t.Errorf("planned with %+v, and brings %+v", p.Dependencies, p.AddedPackages)
	}
	e.CreateTemporary(t, installed)
	settled(t, c, installed)
	untilLock(
		t, c, "says with what it works", installed,
		func(p v1beta1.LockPackage) bool { return len(p.OptionalDependencies) == 1 },
	)
	stop()
	announceRuntimes(t, c)

	p = install(t, pl, env.NewProvider("optional-any", at+"any:v1"))
	if len(p.AddedPackages) != 1 || !strings.HasPrefix(p.AddedPackages[0].Reference, at+"mail:v1.0.0") {
		t.Errorf("it brings %+v", p.AddedPackages)
	}
	// The plan contains the objects of the dependency and the permissions of its runtime.
	mail := p.AddedPackages[0]
	if len(mail.Objects.Changes) != 1 || mail.Objects.Changes[0].Action != plan.Create ||
		mail.Objects.Changes[0].Ref.Name != "letters.mail.optional.test" {
		t.Errorf("the objects of the dependency are %+v", mail.Objects)
	}
	if mail.Permissions == nil || len(mail.Permissions.Added) == 0 {
		t.Errorf("the permissions of the dependency are %+v", mail.Permissions)
	}
	_, err := pl.Install(t.Context(), env.NewProvider("optional-new", at+"new:v1"), planner.Options{})
	if !errors.Is(err, solver.ErrUnsolvable) ||
		!strings.Contains(err.Error(), "provider/optional-shop works only with "+at+"mail <v2") {
		t.Errorf("got %v", err)
	}
}
