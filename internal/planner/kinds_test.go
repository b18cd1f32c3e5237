package planner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const kindsAt = "registry.example.com/kinds/"

// kindsContent returns packages that provide Wheel of a group, and packages that require it.
func kindsContent(group string) *fakeContent {
	s := newFakeContent()
	wheel := crd(group, "Wheel", "one")
	for ref, stream := range map[string]string{
		"wheels:v1.0.0": provider("wheels", "", wheel), "other:v1.0.0": provider("other", "", wheel),
		"car:v1.0.0":   requiring("car", "wheels."+group+"/v1"),
		"truck:v1.0.0": requiring("truck", "Wheel."+group),
		"bike:v1.0.0":  requiring("bike", "Wheel."+group+"/v9"),
		"train:v1.0.0": requiring("train", "*."+group+"/v1"),
		"self:v1.0.0":  requiring("self", "Axle."+group+"/v1") + crd(group, "Axle", "one"),
	} {
		s.put(kindsAt+ref, stream)
	}
	return s
}

// requiring returns the stream of a provider that requires a kind.
func requiring(name, kind string) string {
	return provider(name, fmt.Sprintf("spec:\n  dependsOn:\n  - crd: %q\n", kind))
}

// sourceOf returns a source of packages of the content.
func sourceOf(t *testing.T, s *fakeContent, names ...string) provide.Packages {
	t.Helper()
	out := provide.Packages{Name: "test"}
	for _, name := range names {
		repository, tag, _ := strings.Cut(kindsAt+name, ":")
		d := s.tags[kindsAt+name]
		pkg, err := xpkg.Read([]byte(s.packages[d]), xpkg.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out.All = append(out.All, provide.Package{Repository: repository, Version: tag, Digest: d, Content: pkg})
	}
	return out
}

// A kind that several packages may provide fails the plan, whose transport fails the test at a write; and the manager,
// which knows no sources, waits, and writes nothing.
func TestAnUndecidedKindCausesNoWrites(t *testing.T) {
	e := env.New(t)
	e.InstallPackageAPI(t)
	const group = "undecided.kinds.test"
	s := kindsContent(group)
	pl := newPlanner(t, e.Config, s)
	pl.Registry = s
	car := env.NewProvider("undecided-car", kindsAt+"car:v1.0.0")

	_, err := pl.Install(t.Context(), car, planner.Options{})
	if !errors.Is(err, provide.ErrNoProvider) {
		t.Errorf("without sources: %v", err)
	}
	pl.Kinds = &provide.Finder{Sources: []provide.Source{sourceOf(t, s, "wheels:v1.0.0"), sourceOf(t, s, "other:v1.0.0")}}
	_, err = pl.Install(t.Context(), car, planner.Options{})
	if !errors.Is(err, provide.ErrAmbiguous) {
		t.Fatalf("with two packages: %v", err)
	}
	for _, want := range []string{"`xpkg install provider " + kindsAt + "wheels:v1.0.0`", "`xpkg install provider " +
		kindsAt + "other:v1.0.0`"} {
		if text := errcode.Message(err); !strings.Contains(text, want) {
			t.Errorf("there is no %s in %s", want, text)
		}
	}

	audit := &env.Audit{}
	(&env.Env{Config: audit.Wrap(rest.CopyConfig(e.Config))}).
		RunManager(t, controller.Options{Content: s, Dependencies: &controller.Dependencies{Registry: s}})
	e.CreateTemporary(t, car)
	e.WaitCondition(t, car, v1.TypeHealthy, corev1.ConditionFalse, "NoProvider: ")
	e.WaitCondition(t, car, v1.TypeHealthy, corev1.ConditionFalse, "Run `xpkg install --kind wheels."+group+"/v1`")
	writes := slices.DeleteFunc(audit.Writes(""), func(w string) bool { return strings.Contains(w, "undecided-car") })
	if len(writes) > 0 {
		t.Errorf("the manager has written %q", writes)
	}
	if car.GetAnnotations()[graph.AnnotationKindProviders] != "" {
		t.Error("a provider is recorded")
	}
}

// The provider that is installed is recorded, and a recorded provider is installed. Neither changes when another
// package provides the kind.
func TestTheProviderOfAKindIsRecordedOnThePackage(t *testing.T) {
	e := env.New(t)
	const group = "recorded.kinds.test"
	s := kindsContent(group)
	e.RunManager(t, controller.Options{Content: s, Dependencies: &controller.Dependencies{Registry: s}})
	pl := newPlanner(t, e.Config, s)
	pl.Registry = s

	// A plan selects the only package, and the manager installs it.
	pl.Kinds = &provide.Finder{Sources: []provide.Source{sourceOf(t, s, "wheels:v1.0.0")}}
	p := install(t, pl, env.NewProvider("recorded-car", kindsAt+"car:v1.0.0"))
	if len(p.AddedPackages) != 1 || p.AddedPackages[0].Reference != kindsAt+"wheels:v1.0.0" || len(p.Dependencies) != 1 ||
		p.Dependencies[0].CRD != "wheels."+group+"/v1" {
		t.Fatalf("the plan adds %+v for %+v", p.AddedPackages, p.Dependencies)
	}
	car, err := p.Wanted()
	if err != nil {
		t.Fatal(err)
	}
	wheels := env.NewProvider("kinds-wheels", "")
	t.Cleanup(func() { e.CleanUp(t, wheels) })
	e.CreateTemporary(t, car)
	settled(t, e.Client, car)
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(wheels), wheels); err != nil {
		t.Fatal(err)
	}

	// The manager finds the installed package for another one, and records it.
	truck := env.NewProvider("recorded-truck", kindsAt+"truck:v1.0.0")
	train := env.NewProvider("recorded-train", kindsAt+"train:v1.0.0")
	self := env.NewProvider("recorded-self", kindsAt+"self:v1.0.0")
	e.CreateTemporary(t, truck, train, self)
	for _, x := range []*v1.Provider{truck, train, self} {
		settled(t, e.Client, x)
	}
	want := []dependency.Dependency{{Package: kindsAt + "wheels", CRD: "Wheel." + group}}
	if got := graph.KindProviders(truck); !slices.Equal(got, want) {
		t.Errorf("recorded are %+v", got)
	}
	if got := graph.KindProviders(train); len(got) == 0 ||
		!slices.Contains(got, dependency.Dependency{Package: kindsAt + "wheels", CRD: "Wheel." + group + "/v1"}) {
		t.Errorf("for every kind of the group recorded are %+v", got)
	}
	if got := graph.KindProviders(self); len(got) != 0 {
		t.Errorf("for a kind of its own recorded are %+v", got)
	}

	// A source with another package does not change the plan.
	pl.Kinds = &provide.Finder{Sources: []provide.Source{sourceOf(t, s, "other:v1.0.0")}}
	if p := install(t, pl, car); len(p.AddedPackages) != 0 || p.HasChanges() {
		t.Errorf("the plan has changes: %+v", p)
	}
	// The provider has dependents.
	users := []string{"provider/recorded-car needs " + kindsAt + "wheels for wheels." + group +
		"/v1", "provider/recorded-train needs " + kindsAt + "wheels for Wheel." + group +
		"/v1", "provider/recorded-truck needs " + kindsAt + "wheels for Wheel." + group}
	plan, err := pl.Uninstall(t.Context(), wheels, planner.Options{})
	expectBreaks(t, plan, err, users, ", and it would not be installed")
	// A version without the kind, and another package in place of the provider, have the same effect.
	pl.Kinds = nil
	s.put(kindsAt+"wheels:v2.0.0", provider("wheels", "", crd(group, "Tyre", "one")))
	for reference, after := range map[string]string{
		kindsAt + "wheels:v2.0.0": ", and it would not provide that at v2.0.0",
		kindsAt + "other:v1.0.0":  ", and it would be replaced by " + kindsAt + "other",
	} {
		plan, err := pl.Install(t.Context(), env.NewProvider("kinds-wheels", reference), planner.Options{})
		expectBreaks(t, plan, err, users, after)
	}

	// A version that the provider does not serve is reported, and the provider is not replaced.
	bike := env.NewProvider("recorded-bike", kindsAt+"bike:v1.0.0")
	e.CreateTemporary(t, bike)
	wait.Until(t, limit, "the unserved version is reported", func() (string, bool) {
		err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(bike), bike)
		message := bike.GetCondition(v1.TypeHealthy).Message
		return message,
			err == nil && strings.HasPrefix(message, "KindNotProvided: the API server does not serve Wheel."+group+"/v9")
	})
	if bike.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue {
		t.Error("a package without its kind is healthy")
	}
}

// A package that is installed in a version without a kind is not selected for it: the plan fails before anything is
// recorded, and names the update.
func TestAnInstalledPackageWithoutTheKindIsNotSelected(t *testing.T) {
	e := env.New(t)
	const group = "former.kinds.test"
	s := kindsContent(group)
	s.put(kindsAt+"wheels:v2.0.0", provider("wheels", "", crd(group, "Tyre", "one")))
	e.RunManager(t, controller.Options{Content: s, Dependencies: &controller.Dependencies{Registry: s}})
	wheels := env.NewProvider("former-wheels", kindsAt+"wheels:v2.0.0")
	e.CreateTemporary(t, wheels)
	settled(t, e.Client, wheels)
	pl := newPlanner(t, e.Config, s)
	pl.Registry = s
	pl.Kinds = &provide.Finder{Sources: []provide.Source{sourceOf(t, s, "wheels:v1.0.0")}, Held: pl.HeldKinds}
	_, err := pl.Install(t.Context(), env.NewProvider("former-car", kindsAt+"car:v1.0.0"), planner.Options{})
	if !errors.Is(err, provide.ErrKindHeld) ||
		!strings.Contains(errcode.Message(err), "`xpkg update provider/former-wheels v1.0.0`") {
		t.Errorf("the plan fails with %v", err)
	}
	// Together with the update, it can be planned.
	together := planner.Options{ChangedTogether: map[string]bool{"provider/former-wheels": true}}
	if _, err := pl.Install(t.Context(), env.NewProvider("former-car", kindsAt+"car:v1.0.0"), together); err != nil {
		t.Errorf("together with the update: %v", err)
	}
}

// expectBreaks checks that a plan breaks the users of kinds, and needs consent.
func expectBreaks(t *testing.T, p *planner.Plan, err error, users []string, after string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range p.Breaks {
		got = append(got, b.String())
	}
	slices.Sort(got)
	var want []string
	for _, u := range users {
		want = append(want, u+after)
	}
	if !slices.Equal(got, want) || !errors.Is(p.ConsentError(), planner.ErrDependentsBroken) {
		t.Errorf("the plan breaks %q, want %q, and needs the consent %v", got, want, p.ConsentError())
	}
}

// A plan to install a package for a kind fails if its content does not define the kind: an index is only a claim.
func TestAPackageThatLacksItsKindIsNotInstalled(t *testing.T) {
	e := env.New(t)
	e.InstallPackageAPI(t)
	const group = "claimed.kinds.test"
	s := kindsContent(group)
	pl := newPlanner(t, e.Config, s)
	for kind, want := range map[string]bool{"Wheel." + group: true, "wheels." + group + "/v1": true, "Wheel." + group +
		"/v2": false, "Door." + group: false} {
		k, err := dependency.ParseKindRef(kind)
		if err != nil {
			t.Fatal(err)
		}
		var p *planner.Plan
		p, err = pl.Install(t.Context(), env.NewProvider("claimed-wheels", kindsAt+"wheels:v1.0.0"), planner.Options{
			Provides: []dependency.KindRef{k},
		})
		if want && (err != nil || len(p.Objects.Changes) != 1) || !want && !errors.Is(err, provide.ErrNotProvided) {
			t.Errorf("%s: %v", kind, err)
		}
	}

	// The newest version of the package that is selected for another one lacks the kind.
	pl.Registry = s
	pl.Kinds = &provide.Finder{Sources: []provide.Source{sourceOf(t, s, "wheels:v1.0.0")}}
	s.put(kindsAt+"wheels:v2.0.0", provider("wheels", "", crd(group, "Tyre", "one")))
	got, err := pl.Install(t.Context(), env.NewProvider("claimed-car", kindsAt+"car:v1.0.0"), planner.Options{})
	if err != nil || len(got.AddedPackages) != 1 || got.AddedPackages[0].Reference != kindsAt+"wheels:v1.0.0" {
		t.Errorf("with an older version that has the kind, the plan adds %+v: %v", got, err)
	}
	// No version has it.
	s.put(kindsAt+"wheels:v1.0.0", provider("wheels", "", crd(group, "Tyre", "one")))
	if _, err := pl.Install(
		t.Context(), env.NewProvider("claimed-car", kindsAt+"car:v1.0.0"), planner.Options{},
	); !errors.Is(err, provide.ErrNotProvided) {
		t.Errorf("for a package that requires the kind: %v", err)
	}
}

// Packages that require kinds of each other, or a kind and a package, are refused by the plan before anything is
// written, and by the manager before their objects are.
func TestACycleOfKindsIsRefused(t *testing.T) {
	e := env.New(t)
	const group = "circle.kinds.test"
	s := newFakeContent()
	for ref, stream := range map[string]string{
		"hen:v1.0.0": requiring("hen", "Egg."+group+"/v1") + crd(group, "Hen", "one"),
		"egg:v1.0.0": requiring("egg", "hens."+group+"/v1") + crd(group, "Egg", "one"),
		"ant:v1.0.0": requiring("ant", "Bee."+group+"/v1") + crd(group, "Ant", "one"),
		"bee:v1.0.0": provider("bee", "spec:\n  dependsOn:\n  - {provider: "+kindsAt+"ant, version: v1.0.0}\n") +
			crd(group, "Bee", "one"),
		"top:v1.0.0": requiring("top", "Mid."+group+"/v1"),
		"mid:v1.0.0": requiring("mid", "Low."+group+"/v1") + crd(group, "Mid", "one"),
	} {
		s.put(kindsAt+ref, stream)
	}
	audit := &env.Audit{}
	(&env.Env{Config: audit.Wrap(rest.CopyConfig(e.Config))}).
		RunManager(t, controller.Options{Content: s, Dependencies: &controller.Dependencies{Registry: s}})
	pl := newPlanner(t, e.Config, s)
	pl.Registry = s
	pl.Kinds = &provide.Finder{Sources: []provide.Source{
		sourceOf(t, s, "hen:v1.0.0", "egg:v1.0.0", "ant:v1.0.0", "bee:v1.0.0", "mid:v1.0.0"),
	}}
	refuses := func(name string) {
		t.Helper()
		if _, err := pl.Install(
			t.Context(), env.NewProvider("circle-"+name, kindsAt+name+":v1.0.0"), planner.Options{},
		); !errors.Is(err, solver.ErrCycle) {
			t.Errorf("the plan of %s: %v", name, err)
		}
	}
	for _, name := range []string{"hen", "egg", "ant", "bee"} {
		refuses(name)
	}
	p := install(t, pl, env.NewProvider("circle-top", kindsAt+"top:v1.0.0"))
	if !slices.ContainsFunc(p.Warnings, func(w string) bool {
		return strings.Contains(w, "requires Low."+group+"/v1, and no installed package provides it")
	}) {
		t.Errorf("the plan warns %q", p.Warnings)
	}

	for _, pair := range [][2]string{{"hen", "egg"}, {"ant", "bee"}} {
		first, second := env.NewProvider("circle-"+pair[0], kindsAt+pair[0]+":v1.0.0"),
			env.NewProvider("circle-"+pair[1], kindsAt+pair[1]+":v1.0.0")
		e.CreateTemporary(t, first)
		e.WaitCondition(t, first, v1.TypeHealthy, corev1.ConditionFalse, provide.ErrNoProvider.Name+": ")
		refuses(pair[1])
		e.CreateTemporary(t, second)
		for _, x := range []*v1.Provider{first, second} {
			e.WaitCondition(t, x, v1.TypeHealthy, corev1.ConditionFalse, solver.ErrCycle.Name+": ")
		}
		refuses(pair[0])
		e.Delete(t, first)
		e.WaitGone(t, first)
		e.Delete(t, second)
		e.WaitGone(t, second)
	}
	// The provider of a kind that a user recorded is not installed.
	hen := env.NewProvider("circle-hen", kindsAt+"hen:v1.0.0")
	graph.SetKindProviders(hen, []dependency.Dependency{{
		Package: kindsAt + "egg", Constraint: "v1.0.0", CRD: "Egg." + group + "/v1",
	}})
	e.CreateTemporary(t, hen)
	e.WaitCondition(t, hen, v1.TypeHealthy, corev1.ConditionFalse, solver.ErrCycle.Name+": ")
	writes := slices.DeleteFunc(
		audit.Writes(group), func(w string) bool { return !strings.Contains(w, "customresourcedefinitions") },
	)
	writes = append(writes, audit.Writes("kinds-egg")...)
	if len(writes) > 0 {
		t.Errorf("the manager has written %q", writes)
	}
}

// A package whose required kind an installed package will provide waits for it, and no other package is selected.
func TestAKindOfAPackageThatIsInstalledMeanwhileIsAwaited(t *testing.T) {
	e := env.New(t)
	const group = "awaited.kinds.test"
	s := newFakeContent()
	for ref, stream := range map[string]string{
		"slow:v1.0.0": requiring("slow", "Missing."+group+"/v1") + crd(group, "Wheel", "one"),
		"user:v1.0.0": requiring("user", "Wheel."+group+"/v1"),
		"last:v1.0.0": provider("last", "", crd(group, "Missing", "one")),
	} {
		s.put(kindsAt+ref, stream)
	}
	e.RunManager(t, controller.Options{Content: s, Dependencies: &controller.Dependencies{Registry: s}})
	slow, user, last := env.NewProvider("awaited-slow", kindsAt+"slow:v1.0.0"),
		env.NewProvider("awaited-user", kindsAt+"user:v1.0.0"), env.NewProvider("awaited-last", kindsAt+"last:v1.0.0")
	e.CreateTemporary(t, slow)
	e.WaitCondition(t, slow, v1.TypeHealthy, corev1.ConditionFalse, provide.ErrNoProvider.Name+": ")
	pl := newPlanner(t, e.Config, s)
	pl.Registry = s
	if p := install(t, pl, user); len(p.Dependencies) != 1 || p.Dependencies[0].Installed != kindsAt+"slow:v1.0.0" {
		t.Errorf("the plan has the dependencies %+v", p.Dependencies)
	}
	e.CreateTemporary(t, user)
	e.WaitCondition(t, user, v1.TypeHealthy, corev1.ConditionFalse, graph.ErrDependencyComing.Name+": ")
	e.CreateTemporary(t, last)
	for _, x := range []*v1.Provider{last, slow, user} {
		settled(t, e.Client, x)
	}
	if got := graph.KindProviders(user); len(got) != 1 || got[0].Package != kindsAt+"slow" {
		t.Errorf("recorded are %+v", got)
	}
}

// All kinds of a group stand for the recorded ones: a package is not healthy without one of them, and a deleted
// provider is replaced by the newest version that has the kinds which all packages require.
func TestTheRecordedKindsOfAGroupAreRequired(t *testing.T) {
	e := env.New(t)
	const group = "group.kinds.test"
	s := newFakeContent()
	wheel, axle := crd(group, "Wheel", "one"), crd(group, "Axle", "one")
	s.put(kindsAt+"parts:v1.0.0", provider("parts", "", wheel, axle))
	s.put(kindsAt+"parts:v2.0.0", provider("parts", "", wheel))
	s.put(kindsAt+"train:v1.0.0", requiring("train", "*."+group+"/v1"))
	e.RunManager(t, controller.Options{Content: s, Dependencies: &controller.Dependencies{Registry: s}})
	s.put(kindsAt+"cart:v1.0.0", requiring("cart", "Wheel."+group+"/v1"))
	parts, train := env.NewProvider("group-parts", kindsAt+"parts:v1.0.0"),
		env.NewProvider("group-train", kindsAt+"train:v1.0.0")
	cart := env.NewProvider("group-cart", kindsAt+"cart:v1.0.0")
	e.CreateTemporary(t, parts)
	settled(t, e.Client, parts)
	e.CreateTemporary(t, train)
	settled(t, e.Client, train)
	e.CreateTemporary(t, cart)
	settled(t, e.Client, cart)
	if got := graph.KindProviders(train); len(got) != 2 {
		t.Errorf("recorded are %+v", got)
	}
	env.Update(t, e, parts, func(p *v1.Provider) { p.Spec.Package = kindsAt + "parts:v2.0.0" })
	// A CRD that a package no longer contains stays until a user deletes it.
	settled(t, e.Client, parts)
	e.Delete(t, parts)
	e.WaitGone(t, parts)
	again := env.NewProvider("kinds-parts", kindsAt+"parts:v1.0.0")
	settled(t, e.Client, again)
	t.Cleanup(func() { e.CleanUp(t, again) })
	settled(t, e.Client, train)
	if again.Spec.Package != kindsAt+"parts:v1.0.0" {
		t.Errorf("the provider of the recorded kinds is installed again as %s", again.Spec.Package)
	}
}
