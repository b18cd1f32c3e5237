package planner_test

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
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
	_, want := absent.Install(t.Context(), env.NewProvider("never", at+"never:v1"), planner.Options{})
	_, got := installed.Install(t.Context(), env.NewProvider("never", at+"never:v1"), planner.Options{})
	if !errors.Is(want, solver.ErrUnsolvable) || got == nil || got.Error() != want.Error() {
		t.Errorf("with the dependency %v, and without it %v", got, want)
	}
	p, err := installed.Install(t.Context(), env.NewProvider("later", at+"later:v1"), planner.Options{})
	if err != nil || p.Dependencies[0].State != graph.Incompatible {
		t.Fatalf("an update of the dependency is possible: %+v, %v", p, err)
	}
	// The plan needs consent, and names the update that helps.
	const update = "let provider/mail request registry.example.com/unsolvable/mail v2.0.0 instead of v1.0.0"
	if err := p.ConsentError(); !errors.Is(err, graph.ErrDependencyVersion) ||
		!strings.Contains(errcode.From(err).Do, update) {
		t.Errorf("the plan needs consent: %v; %s", err, errcode.From(err).Do)
	}
}

// An update that does not fit the installed packages names the command that updates all of them, without those that
// need not move; if there is none, it explains the conflict.
func TestRemedyUpdatesPackagesTogether(t *testing.T) {
	s := newFakeContent()
	const at = "registry.example.com/together/"
	needs := func(name, constraint string) string {
		return strings.Replace(needing(name, at+"base"), "'>=v1'", "'"+constraint+"'", 1)
	}
	digests := map[string]oci.Digest{}
	for ref, stream := range map[string]string{
		"base:v1.0.0": provider("base", ""), "base:v2.0.0": provider("base", ""), "base:v3.0.0": provider("base", ""),
		"boats:v1.0.0": needs("boats", "<v2"), "boats:v2.0.0": needs("boats", ">=v2 <v3"),
		"boats:v3.0.0": needs("boats", ">=v3"),
		"rafts:v1.0.0": needs("rafts", "<v2"), "rafts:v2.0.0": needs("rafts", "<v3"),
		"canoes:v1.0.0": needs("canoes", ">=v1"),
	} {
		digests[ref] = s.put(at+ref, stream)
	}
	lock := &v1beta1.Lock{}
	lock.Name = v1beta1.LockName
	objects := []client.Object{lock}
	for name, constraint := range map[string]string{"base": "", "boats": "<v2", "rafts": "<v2", "canoes": ">=v1"} {
		entry := v1beta1.LockPackage{Name: name + "-1", Source: at + name, Version: "v1.0.0"}
		if constraint != "" {
			entry.Dependencies = []v1beta1.Dependency{{Package: at + "base", Constraints: constraint}}
		}
		lock.Packages = append(lock.Packages, entry)
		p := env.NewProvider(name, at+name+":v1.0.0")
		p.Status.CurrentIdentifier, p.Status.ResolvedDigest = p.Spec.Package, digests[name+":v1.0.0"].String()
		objects = append(objects, p)
	}
	for to, want := range map[string]string{
		"boats:v2.0.0": "Update them together with `xpkg update provider/boats@v2.0.0 provider/rafts@v2.0.0 provider/base@v2.0.0`.",
		"base:v2.0.0":  "Update them together with `xpkg update provider/base@v2.0.0 provider/rafts@v2.0.0 provider/boats@v2.0.0`.",
		"boats:v3.0.0": "Any of these changes resolves the conflict: ",
		"base:v3.0.0":  "Update the dependents first",
	} {
		for _, policy := range []graph.Policy{graph.None, graph.Upgrade} {
			pl := fakePlanner(t, s, objects...)
			pl.Registry = s
			name, _, _ := strings.Cut(to, ":")
			p, err := pl.Install(t.Context(), env.NewProvider(name, at+to), planner.Options{Upgrades: policy})
			if err == nil {
				err = p.ConsentError()
			}
			if err == nil {
				t.Errorf("%s with %s is accepted: %+v", to, policy, p.Dependencies)
				continue
			}
			if do := errcode.From(err).Do; !strings.Contains(do, want) {
				t.Errorf("%s with %s: %v; the advice is %q, want %q", to, policy, err, do, want)
			}
		}
	}
}
