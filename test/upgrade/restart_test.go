package upgrade_test

import (
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// A runtime that is killed is restarted, and the conditions report both. A package without a runtime
// is refused before any of its objects is written.
func TestKilledRuntimeIsRestarted(t *testing.T) {
	s := newSuite(t)
	s.configure()
	p := provider("upgrade", s.push("v1", "serve", ""))
	s.Create(s, p)
	s.WaitReady(s, p)
	before, _ := s.supervisor.Status(p.Status.CurrentRevision)
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.WaitPackage(s, p, "reports the end of its runtime", func() bool {
		c := p.GetCondition(v1.TypeHealthy)
		return c.Status == corev1.ConditionFalse &&
			c.Message == `the runtime was started and ended: it was ended by the signal "killed"`
	})
	s.WaitReady(s, p)
	if after, _ := s.supervisor.Status(p.Status.CurrentRevision); !after.Running || after.PID == before.PID ||
		after.Restarts != before.Restarts+1 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if p.Status.Rollback != nil || !p.Status.Activation.Healthy {
		t.Errorf("a program that ends later is no failed activation: %+v", p.Status)
	}

	empty := provider("empty", publish.Stream(t, s.Registry, "upgrade/empty", "v1", stream("empty", "")).String())
	s.Create(s, empty)
	s.WaitPackage(s, empty, "reports the missing runtime", func() bool {
		return empty.GetCondition(v1.TypeReady).Reason == "NoProgram" &&
			empty.GetCondition(v1.TypeStalled).Status == corev1.ConditionTrue
	})

	for _, o := range []*v1.Provider{p, empty} {
		if err := s.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.WaitGone(s, thingDefinition())
}
