package controller_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// versions pushes versions of a package with different content, and returns their
// references.
func versions(t *testing.T, r *registry, name string, n int) []string {
	t.Helper()
	refs := make([]string, n)
	for i := range refs {
		stream := provider(name, crd(name+".test", "Thing", fmt.Sprintf("version %d", i+1)))
		refs[i], _ = r.push(t, fmt.Sprintf("acme/%s:v%d", name, i+1), stream)
	}
	return refs
}

// upgradeTo requests another reference, and waits until its revision runs.
func upgradeTo(t *testing.T, s *testEnv, p *v1.Provider, ref string) {
	t.Helper()
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = ref })
	untilSettled(t, s, p)
}

// states returns the revisions of a package as "version:number", with a star for
// the active one, by ascending number.
func states(t *testing.T, s *testEnv, p v1.Package) []string {
	t.Helper()
	out := []string{}
	for _, rev := range s.Revisions(t, p) {
		spec := rev.RevisionSpec()
		_, version, _ := strings.Cut(spec.Image[strings.LastIndex(spec.Image, "/"):], ":")
		state := fmt.Sprintf("%s:%d", version, spec.Revision)
		if spec.DesiredState == v1.RevisionActive {
			state += "*"
		}
		out = append(out, state)
	}
	return out
}

func untilStates(t *testing.T, s *testEnv, p v1.Package, want ...string) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("the revisions of %s are %v", p.GetName(), want), func() (string, bool) {
		got := states(t, s, p)
		return fmt.Sprint(got), cmp.Equal(want, got)
	})
}

// Equal content and equal choices have one revision, and a change without effect on
// the cluster creates none.
func TestNamesOfRevisions(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	name := "rev-names-" + strings.Repeat("long-", 7) + "name-of-a-package"
	refs := versions(t, r, "names", 1)
	p := env.NewProvider(name, refs[0])
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	first := p.Status.CurrentRevision
	hex, ok := strings.CutPrefix(first, name[:50]+"-")
	if !ok || !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(hex) || len(first) > 63 {
		t.Errorf("the revision of %s is named %s", name, first)
	}

	for what, how := range map[string]func(*v1.Provider){
		"history limit":     func(p *v1.Provider) { p.Spec.RevisionHistoryLimit = new(int64(7)) },
		"pull policy":       func(p *v1.Provider) { p.Spec.PackagePullPolicy = corev1.PullAlways },
		"activation policy": func(p *v1.Provider) { p.Spec.RevisionActivationPolicy = v1.ManualActivation },
		"constraints":       func(p *v1.Provider) { p.Spec.IgnoreCrossplaneConstraints = true },
		"dependencies":      func(p *v1.Provider) { p.Spec.SkipDependencyResolution = true },
	} {
		env.Update(t, s.Env, p, how)
		untilSettled(t, s, p)
		if p.Status.CurrentRevision != first {
			t.Errorf("a change of the %s made the revision %s", what, p.Status.CurrentRevision)
		}
	}
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.RevisionActivationPolicy = v1.AutomaticActivation })

	number := int64(1)
	for what, how := range map[string]func(*v1.Provider){
		"common labels":         func(p *v1.Provider) { p.Spec.CommonLabels = map[string]string{"team": "a"} },
		"common annotations":    func(p *v1.Provider) { p.Spec.CommonAnnotations = map[string]string{"team": "a"} },
		"runtime configuration": func(p *v1.Provider) { p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: "other"} },
	} {
		env.Update(t, s.Env, p, how)
		untilSettled(t, s, p)
		number++
		if p.Status.CurrentRevision == first {
			t.Errorf("a change of the %s made no revision", what)
		}
		checkNumber(t, s, p, number)
	}
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		p.Spec.CommonLabels, p.Spec.CommonAnnotations, p.Spec.RuntimeConfigRef = nil, nil, nil
	})
	untilSettled(t, s, p)
	if p.Status.CurrentRevision != first {
		t.Errorf("what there was before is the revision %s now and was %s", p.Status.CurrentRevision, first)
	}
	checkNumber(t, s, p, number+1)
}

// checkNumber checks that the active revision of a package has a number, and that it
// is the highest.
func checkNumber(t *testing.T, s *testEnv, p v1.Package, want int64) {
	t.Helper()
	all := s.Revisions(t, p)
	last := all[len(all)-1]
	if last.RevisionSpec().DesiredState != v1.RevisionActive || last.RevisionSpec().Revision != want {
		t.Errorf("the revisions are %v, want the active one to be number %d", states(t, s, p), want)
	}
}

// The same content with the same choices has the same key, regardless of the name of the package.
func TestSameContentSameKey(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	ref, _ := r.push(t, "acme/same:v1", meta("Configuration", "same", ""))
	elsewhere, _ := r.push(t, "other/same:v9", meta("Configuration", "same", ""))
	var keys []string
	for name, ref := range map[string]string{"rev-same-a": ref, "rev-same-b": elsewhere} {
		p := newConfiguration(name, ref)
		s.CreateTemporary(t, p)
		s.WaitHealthy(t, p)
		keys = append(keys, strings.TrimPrefix(p.Status.CurrentRevision, name+"-"))
	}
	if keys[0] != keys[1] {
		t.Errorf("the same content has the keys %v", keys)
	}
}

// The guide's example: with a limit of three, three inactive revisions and an active
// one, the next upgrade collects the oldest (packages guide,
// "spec.revisionHistoryLimit").
func TestHistoryOfThree(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	refs := versions(t, r, "history", 5)
	p := env.NewProvider("rev-history", refs[0])
	p.Spec.RevisionHistoryLimit = new(int64(3))
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	for _, ref := range refs[1:4] {
		upgradeTo(t, s, p, ref)
	}
	untilStates(t, s, p, "v1:1", "v2:2", "v3:3", "v4:4*")
	upgradeTo(t, s, p, refs[4])
	untilStates(t, s, p, "v2:2", "v3:3", "v4:4", "v5:5*")

	// A rollback takes the next number, and the least recently active revision is the
	// oldest.
	upgradeTo(t, s, p, refs[1])
	untilStates(t, s, p, "v3:3", "v4:4", "v5:5", "v2:6*")
	// A smaller limit is reached at once, and not by one revision at a time.
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.RevisionHistoryLimit = new(int64(1)) })
	untilStates(t, s, p, "v5:5", "v2:6*")
}

func TestHistoryOfOneAndOfAll(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	refs := versions(t, r, "histories", 3)
	one, all := env.NewProvider("rev-history-one", refs[0]), env.NewProvider("rev-history-all", refs[0])
	// Both bring the same object, so one follows the other.
	for _, c := range []struct {
		p    *v1.Provider
		max  *int64
		want []string
	}{
		{one, nil, []string{"v2:2", "v3:3*"}},
		{all, new(int64(0)), []string{"v1:1", "v2:2", "v3:3*"}},
	} {
		c.p.Spec.RevisionHistoryLimit = c.max
		s.CreateTemporary(t, c.p)
		untilSettled(t, s, c.p)
		for _, ref := range refs[1:] {
			upgradeTo(t, s, c.p, ref)
		}
		untilStates(t, s, c.p, c.want...)
		remove(t, s, c.p)
	}
}

// With the policy Manual, only revisions that a user has activated are active. A rollback is
// another activation of the old revision.
func TestManualActivationPolicy(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	refs := versions(t, r, "manuallife", 4)
	p := env.NewProvider("rev-manual", refs[0])
	p.Spec.RevisionActivationPolicy = v1.ManualActivation
	s.CreateTemporary(t, p)
	untilWaits(t, s, p)
	untilStates(t, s, p, "v1:0")
	err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things.manuallife.test"}, newCRD())
	if !apierrors.IsNotFound(err) {
		t.Errorf("an object of a revision that waits was installed (%v)", err)
	}
	rev1 := p.Status.CurrentRevision
	activate(t, s.Client, rev1)
	untilSettled(t, s, p)
	untilStates(t, s, p, "v1:1*")

	// The active revision is kept, however many others were never activated.
	for _, ref := range refs[1:] {
		env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = ref })
		untilWaits(t, s, p)
	}
	all := states(t, s, p)
	if len(all) != 3 || !slices.Contains(all, "v1:1*") || !slices.Contains(all, "v4:0") {
		t.Errorf("the revisions are %v", all)
	}
	if got := schemaDescription(t, s, "things.manuallife.test"); got != "version 1" {
		t.Errorf("the object is of %s", got)
	}
	s.WaitPackage(t, p, "the running revision is healthy", func() bool {
		return p.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue
	})

	// Activating the newest makes one that never ran the oldest, and it is collected.
	rev4 := p.Status.CurrentRevision
	activate(t, s.Client, rev4)
	untilSettled(t, s, p)
	untilStates(t, s, p, "v1:1", "v4:2*")
	if got := schemaDescription(t, s, "things.manuallife.test"); got != "version 4" {
		t.Errorf("the object is of %s", got)
	}

	activate(t, s.Client, rev1)
	untilStates(t, s, p, "v4:2", "v1:3*")
	untilWaits(t, s, p)
	wait.Until(t, limit, "the object is that of the revision that was activated again", func() (string, bool) {
		got := schemaDescription(t, s, "things.manuallife.test")
		return got, got == "version 1"
	})
}

// A user can deactivate the active revision, and no other revision is activated.
func TestManualDeactivation(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	p := env.NewProvider("rev-off", versions(t, r, "outofservice", 1)[0])
	p.Spec.RevisionActivationPolicy = v1.ManualActivation
	s.CreateTemporary(t, p)
	untilWaits(t, s, p)
	activate(t, s.Client, p.Status.CurrentRevision)
	untilSettled(t, s, p)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"Inactive"}}`))
	rev := p.NewRevision()
	rev.SetName(p.Status.CurrentRevision)
	if err := s.Client.Patch(t.Context(), rev, patch); err != nil {
		t.Fatal(err)
	}
	untilOwners(t, s, "things.outofservice.test", "Provider/rev-off")
	untilWaits(t, s, p)

	// With the policy Automatic it is active again.
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.RevisionActivationPolicy = v1.AutomaticActivation })
	untilSettled(t, s, p)
	untilStates(t, s, p, "v1:1*")
	untilOwners(t, s, "things.outofservice.test", "Provider/rev-off*")
}

func untilWaits(t *testing.T, s *testEnv, p *v1.Provider) {
	t.Helper()
	s.WaitPackage(t, p, "waits to be activated", func() bool {
		c := p.GetCondition(v1.TypeInstalled)
		return c.Status == corev1.ConditionFalse && c.Reason == v1.ReasonInactive && c.ObservedGeneration == p.Generation &&
			p.Status.CurrentIdentifier == p.Spec.Package
	})
}
