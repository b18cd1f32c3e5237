package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// Plans read the content of packages that the Lock does not list yet: their dependencies, kinds and objects. Content
// that cannot be read is a warning.
func TestPackagesThatTheLockDoesNotListAreRead(t *testing.T) {
	e := env.New(t)
	const group, at = "unlisted.preview.test", "registry.example.com/unlisted-"
	needs := func(name, version string) string {
		return "spec:\n  dependsOn:\n  - {provider: " + at + name + ", version: \"" + version + "\"}\n"
	}
	s := newFakeContent()
	for ref, stream := range map[string]string{
		"ring:v1.0.0":  provider("ring", needs("chain", ">=v1.0.0"), crd(group, "Ring", "one")),
		"chain:v1.0.0": provider("chain", needs("ring", ">=v1.0.0")),
		"top:v1.0.0":   provider("top", needs("leaf", "<v2.0.0")),
		"leaf:v1.0.0":  provider("leaf", ""),
		"leaf:v2.0.0":  provider("leaf", ""),
		"key:v1.0.0":   requiring("key", "Door."+group+"/v1") + crd(group, "Key", "one"),
		"door:v1.0.0":  requiring("door", "Key."+group+"/v1") + crd(group, "Door", "one"),
		"copy:v1.0.0":  provider("copy", "", crd(group, "Ring", "two")),
	} {
		s.put(at+ref, stream)
	}
	create := func(name, reference string) *v1.Provider {
		p := env.NewProvider(name, reference)
		e.CreateTemporary(t, p)
		return p
	}
	pl := newPlanner(t, e.Config, s)
	pl.Registry = s

	create("unlisted-ring", at+"ring:v1.0.0")
	if _, err := pl.Install(
		t.Context(), env.NewProvider("unlisted-chain", at+"chain:v1.0.0"), planner.Options{},
	); !errors.Is(err, solver.ErrCycle) {
		t.Errorf("the plan of a cycle of packages: %v", err)
	}
	key := create("unlisted-key", at+"key:v1.0.0")
	if _, err := pl.Install(
		t.Context(), env.NewProvider("unlisted-door", at+"door:v1.0.0"), planner.Options{},
	); !errors.Is(err, solver.ErrCycle) {
		t.Errorf("the plan of a cycle of kinds: %v", err)
	}
	e.Delete(t, key)

	leaf, top := create("unlisted-leaf", at+"leaf:v1.0.0"), create("unlisted-top", at+"top:v1.0.0")
	leaf.Spec.Package = at + "leaf:v2.0.0"
	breaks := func(want bool) {
		t.Helper()
		p := install(t, pl, leaf)
		if got := slices.ContainsFunc(p.Breaks, func(b planner.Broken) bool { return b.Name == top.Name }); got != want {
			t.Errorf("the update of the dependency breaks %+v", p.Breaks)
		}
	}
	breaks(true)
	if p, err := pl.Uninstall(t.Context(), leaf, planner.Options{}); err != nil || len(p.Breaks) != 1 {
		t.Errorf("the uninstall of the dependency breaks %+v: %v", p, err)
	}

	p := install(t, pl, env.NewProvider("unlisted-copy", at+"copy:v1.0.0"))
	if !slices.ContainsFunc(p.Objects.Refusals, func(r plan.Refusal) bool {
		return r.Holder == "Provider/unlisted-ring" &&
			r.Ref.Name == "rings."+group
	}) {
		t.Errorf("the plan refuses %+v", p.Objects.Refusals)
	}

	// The Lock lists the former content of a tag that has moved.
	lock := &v1beta1.Lock{}
	lock.Name = v1beta1.LockName
	e.EnsureCreated(t, lock)
	env.Update(t, e, lock, func(lock *v1beta1.Lock) {
		lock.Packages = append(lock.Packages, v1beta1.LockPackage{
			Name: "unlisted-top-former", Source: at + "top", Version: "v1.0.0", Dependencies: []v1beta1.Dependency{},
		})
	})
	breaks(true)
	top.Status.CurrentRevision = "unlisted-top-former"
	if err := e.Client.Status().Update(t.Context(), top); err != nil {
		t.Fatal(err)
	}
	breaks(false)

	create("unlisted-gone", at+"gone:v1.0.0")
	p = install(t, pl, leaf)
	unknown := slices.DeleteFunc(slices.Clone(p.Warnings), func(w string) bool {
		return !strings.HasPrefix(w, "The dependencies of provider/unlisted-gone are not known: ")
	})
	if len(unknown) != 1 || len(p.Objects.Refusals) > 0 {
		t.Errorf("with a package that cannot be read, the plan warns %q, and refuses %+v", p.Warnings, p.Objects.Refusals)
	}
}
