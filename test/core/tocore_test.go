package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// The packages of the manager move to core. No custom resource is unreadable and no runtime stops serving at any
// moment, no UID and no generation of a CRD changes, the manager's part writes each CRD at most once, and no trace of
// the manager is left. Core can then update and delete the packages.
func TestWayBackToCore(t *testing.T) {
	lane.Full(t, "test/core.TestThereAndBack", "test/core.TestRolesOfXRDsMoveFromCoreAndBack")
	s := newWithManager(t)
	const name = "wayback"
	provider := s.installPackage(t, v1.ProviderKind, name, manyKinds(name, "first"))
	function := s.installPackage(t, v1.FunctionKind, name+"-function", functionYAML(name+"-function"))
	configuration := s.installPackage(t, v1.ConfigurationKind, name+
		"-configuration", configurationYAML(name+"-configuration"))
	all := []v1.Package{provider, function, configuration}
	for _, p := range all {
		s.WaitReady(t, p)
	}
	for i := range takenResources {
		s.createThing(t, name, i%takenCRDs, fmt.Sprintf("thing-%d", i))
	}
	before := s.definitionsOf(t, name)
	s.runStandIn(t)
	serving := s.watchServing(t, []v1.Package{provider, function}, name)

	ours := &env.Audit{}
	p := s.plan(t, ours.Wrap(s.Config))
	var text strings.Builder
	p.WriteText(&text)
	t.Log(text.String())
	if p.Pending() != len(p.Steps) {
		t.Errorf("%d of %d steps are pending", p.Pending(), len(p.Steps))
	}
	s.runPlan(t, p)
	serving.check(t)

	written := countDefinitions(ours, name)
	t.Logf("CRDs: %d writes of the migration, %d of core", written, countDefinitions(s.audit, name))
	if written > len(before) {
		t.Errorf("the migration wrote %d CRDs %d times", len(before), written)
	}
	after := s.definitionsOf(t, name)
	for crd, was := range before {
		is := after[crd]
		if was.UID != is.UID || was.Generation != is.Generation {
			t.Errorf("%s: UID %s, generation %d; was %s, %d", crd, is.UID, is.Generation, was.UID, was.Generation)
		}
	}
	if n := s.countThings(t, name); n != takenResources {
		t.Errorf("%d custom resources, want %d", n, takenResources)
	}
	for _, trace := range s.tracesIn(t) {
		t.Errorf("left in the cluster: %s", trace)
	}
	if f := s.standIn.failures(); len(f) > 0 {
		t.Errorf("core failed: %v", f)
	}
	if again := s.plan(t, s.Config); again.Pending() != 0 {
		var text strings.Builder
		again.WriteText(&text)
		t.Errorf("the next plan:\n%s", text.String())
	}

	for _, p := range []v1.Package{provider, function} {
		next := s.publish(t, p.GetName(), "v2.0.0", map[string]string{
			v1.ProviderKind: manyKinds(name, "second"), v1.FunctionKind: functionYAML("second"),
		}[p.PackageKind()])
		env.Update(t, s.Env, p, func(p v1.Package) { p.PackageSpec().Package = next })
		s.waitCore(t, p, next)
	}
	for _, p := range all {
		s.Delete(t, p)
		s.WaitGone(t, p)
	}
	wait.Until(t, env.Limit, "the CRDs are deleted", func() (string, bool) {
		n := len(s.definitionsOf(t, name))
		return fmt.Sprint(n), n == 0
	})
	if f := s.standIn.failures(); len(f) > 0 {
		t.Errorf("core failed: %v", f)
	}
}

// A Provider that moves from core to the manager and back keeps the names of its revision and its Deployment, and its
// pods. Core can then update it, although the manager has written its objects meanwhile.
func TestThereAndBack(t *testing.T) {
	s := newWithCore(t)
	const name = "thereandback"
	p := s.installPackage(t, v1.ProviderKind, name, providerYAML(name, "first"))
	s.runStandIn(t)
	s.waitCore(t, p, p.PackageSpec().Package)
	revisions, pods := s.Revisions(t, p), s.podsOf(t, name)
	deployment := s.deploymentNamed(t, revisions[0].GetName())

	s.fenceCore(t)
	s.runManager(t)
	wait.Until(t, env.Limit, "the manager has taken the Provider over", func() (string, bool) {
		taken := s.Revisions(t, p)
		return fmt.Sprintf("%+v", taken[0].GetFinalizers()),
			len(taken) == 1 && len(taken[0].GetFinalizers()) == 0 && taken[0].RevisionSpec().Digest != ""
	})
	s.WaitReady(t, p)

	plan := s.plan(t, s.Config)
	if !plan.Steps[0].Done {
		t.Errorf("revisions are renamed: %v", plan.Steps[0].Details)
	}
	s.runPlan(t, plan)
	if got := s.Revisions(t, p); len(got) != 1 || got[0].GetUID() != revisions[0].GetUID() {
		t.Errorf("the revision was replaced: %+v", got)
	}
	if got := s.deploymentNamed(t, revisions[0].GetName()); got.UID != deployment.UID {
		t.Error("the Deployment was replaced")
	}
	if got := s.podsOf(t, name); len(pods) != 1 || !slices.Equal(got, pods) {
		t.Errorf("pods %v, were %v", got, pods)
	}
	for _, trace := range s.tracesIn(t) {
		t.Errorf("left in the cluster: %s", trace)
	}
	s.updateAndDelete(t, p, providerYAML(name, "second"))
}

// Core cannot establish a package whose objects still belong to the manager: the step that gives them back is needed.
func TestCoreNeedsTheObjectsBack(t *testing.T) {
	lane.Full(t, "test/core.TestThereAndBack")
	s := newWithManager(t)
	const name = "notgiven"
	p := s.installPackage(t, v1.ProviderKind, name, providerYAML(name, "first"))
	s.WaitReady(t, p)
	s.runStandIn(t)
	plan := s.plan(t, s.Config)
	skipped := plan.Steps[2]
	if !strings.HasPrefix(skipped.Title, "Give the objects") {
		t.Fatalf("the third step is %q", skipped.Title)
	}
	for _, step := range []*migration.Step{plan.Steps[0], plan.Steps[1], plan.Steps[3]} {
		if err := step.Run(t.Context(), t.Logf); err != nil {
			t.Fatalf("%s: %v", step.Title, err)
		}
	}
	wait.Until(t, env.Limit, "core fails", func() (string, bool) {
		failures := s.standIn.failures()
		return fmt.Sprint(failures), len(failures) > 0
	})
	t.Logf("core: %v", s.standIn.failures())

	for _, step := range []*migration.Step{skipped, plan.Steps[4], plan.Steps[5]} {
		if err := step.Run(t.Context(), t.Logf); err != nil {
			t.Fatalf("%s: %v", step.Title, err)
		}
	}
	s.Delete(t, p)
	s.WaitGone(t, p)
}

// countDefinitions counts the writes of the CRDs of a Provider that were no dry runs.
func countDefinitions(audit *env.Audit, name string) int {
	n := 0
	for _, c := range audit.Calls("." + name + ".example.org") {
		if c.Resource == "customresourcedefinitions" && c.Method != "GET" && !c.DryRun {
			n++
		}
	}
	return n
}
