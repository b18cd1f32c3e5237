package core

import (
	"errors"
	"testing"

	"k8s.io/client-go/rest"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/migration/tocore"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

// The way back stops after each step, and at each of its writes: before the write, or after it was carried out without
// an answer. Each time the next run continues, runtimes serve at all moments, and the end is the same.
func TestWayBackContinues(t *testing.T) {
	lane.Full(t, "test/core.TestThereAndBack", "internal/migration/fromcore.TestPlanFollowsTheCluster")
	for name, stop := range map[string]func(t *testing.T, s *withManager) (runs int){
		"steps": func(t *testing.T, s *withManager) int {
			for n := 0; ; n++ {
				if err := s.migrate(t, s.Config, 1); err == nil {
					return n
				} else if !errors.Is(err, errInterrupted) {
					t.Fatal(err)
				}
			}
		},
		"errors": func(t *testing.T, s *withManager) int {
			return failEachCall(
				t, s.Config, fault.ServerError, isWriteCall, func(cfg *rest.Config) error { return s.migrate(t, cfg, 0) },
			)
		},
		"lost": func(t *testing.T, s *withManager) int {
			return failEachCall(
				t, s.Config, fault.LostAnswer, isWriteCall, func(cfg *rest.Config) error { return s.migrate(t, cfg, 0) },
			)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWithManager(t)
			pkg := "back" + name
			provider := s.installPackage(t, v1.ProviderKind, pkg, providerYAML(pkg, "first"))
			function := s.installPackage(t, v1.FunctionKind, pkg+"-function", functionYAML(pkg+"-function"))
			for _, p := range []v1.Package{provider, function} {
				s.WaitReady(t, p)
			}
			before := s.definitionsOf(t, pkg)
			s.runStandIn(t)
			serving := s.watchServing(t, []v1.Package{provider, function}, "")
			runs := stop(t, s)
			t.Logf("%d runs were stopped", runs)
			if runs < 4 {
				t.Errorf("%d runs were stopped, want at least 4", runs)
			}
			serving.check(t)
			for crd, was := range before {
				if is := s.definitionsOf(t, pkg)[crd]; was.UID != is.UID || was.Generation != is.Generation {
					t.Errorf("%s: UID %s, generation %d; was %s, %d", crd, is.UID, is.Generation, was.UID, was.Generation)
				}
			}
			for _, trace := range s.tracesIn(t) {
				t.Errorf("left in the cluster: %s", trace)
			}
			s.updateAndDelete(t, provider, providerYAML(pkg, "second"))
			s.updateAndDelete(t, function, functionYAML("second"))
		})
	}
}

// migrate plans and carries out the way back as a new process. It stops after a number of steps.
func (s *withManager) migrate(t *testing.T, cfg *rest.Config, steps int) error {
	p, err := tocore.Plan(t.Context(), s.options(t, cfg))
	if err != nil {
		return err
	}
	return p.Run(t.Context(), env.Limit, func(string, ...any) {}, func(*migration.Step) error {
		if steps--; steps == 0 {
			return errInterrupted
		}
		return nil
	})
}
