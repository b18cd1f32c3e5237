package planner_test

import (
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

// A plan that moves a dependency lists the changes of the fields of its kinds, and the packages that lose a kind.
func TestPlanShowsTheChangedKindsOfMovedDependencies(t *testing.T) {
	e := env.New(t)
	s := newFakeContent()
	const at = "registry.example.com/movedkinds/"
	engine := crd("movedkinds.preview.test", "Engine", "one")
	breaking := strings.Replace(engine, "scope: Cluster", "scope: Namespaced", 1)
	if breaking == engine {
		t.Fatal("the scope of the CRD is not found")
	}
	for ref, stream := range map[string]string{
		"car:v1": needing("car", at+"engine"), "car:v2": strings.Replace(needing("car", at+"engine"), "'>=v1'", "'>=v2'", 1),
		"truck:v1":      requiring("truck", "Engine.movedkinds.preview.test"),
		"engine:v1.0.0": provider("engine", "", engine), "engine:v2.0.0": provider("engine", "", breaking),
	} {
		s.put(at+ref, stream)
	}
	pl := newPlanner(t, e.Config, s)
	pl.Registry = s
	dependency, car := env.NewProvider("moved-engine", at+"engine:v1.0.0"), env.NewProvider("moved-car", at+"car:v1")
	dependency.Labels = map[string]string{graph.LabelAutoInstalled: "true"}
	stop := runManager(t, e.Config, s).Stop
	e.CreateTemporary(t, dependency, car)
	settled(t, e.Client, dependency)
	settled(t, e.Client, car)
	truck := env.NewProvider("moved-truck", at+"truck:v1")
	e.CreateTemporary(t, truck)
	settled(t, e.Client, truck)
	stop()

	p := installWith(
		t, pl, planner.Options{Upgrades: graph.Upgrade},
		with(car, func(p v1.Package) { p.PackageSpec().Package = at + "car:v2" }),
	)
	if len(p.AddedPackages) != 1 || p.AddedPackages[0].Name != dependency.Name {
		t.Fatalf("the plan moves %+v", p.AddedPackages)
	}
	kinds := p.AddedPackages[0].KindChanges
	if len(kinds) != 1 || kinds[0].Name != "engines.movedkinds.preview.test" ||
		p.CountKindChanges()[crddiff.Breaking] == 0 || len(p.KindChanges) != 0 {
		t.Errorf("the changes of kinds are %+v, and those of the package itself %+v", kinds, p.KindChanges)
	}
	if len(p.Breaks) != 0 {
		t.Errorf("the plan breaks %v", p.Breaks)
	}
	s.put(at+"engine:v3.0.0", provider("engine", "", crd("movedkinds.preview.test", "Motor", "one")))
	s.put(at+"car:v3", strings.Replace(needing("car", at+"engine"), "'>=v1'", "'>=v3'", 1))
	p = installWith(
		t, pl, planner.Options{Upgrades: graph.Upgrade},
		with(car, func(p v1.Package) { p.PackageSpec().Package = at + "car:v3" }),
	)
	if want := "provider/moved-truck needs " + at +
		"engine for Engine.movedkinds.preview.test, and it would not provide that at v3.0.0"; len(
		p.Breaks,
	) != 1 || p.Breaks[0].String() != want {
		t.Errorf("the plan moves %+v and breaks %v, want %s", p.AddedPackages[0].Reference, p.Breaks, want)
	}
}
