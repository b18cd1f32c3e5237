package upgrade_test

import (
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// A program that is killed is started again, and the package says both. A package
// without a program is refused before anything of it is written.
func TestProgramsComeBack(t *testing.T) {
	s := newStand(t)
	s.configure()
	p := provider("upgrade", s.push("v1", "serve", ""))
	s.create(p)
	s.untilHealthy(p)
	before, _ := s.supervisor.Status(p.Status.CurrentRevision)
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until(p, "says that its program has ended", func() bool {
		c := p.GetCondition(v1.TypeHealthy)
		return c.Status == corev1.ConditionFalse && c.Message == `the program was started and ended: it was ended by the signal "killed"`
	})
	s.untilHealthy(p)
	if after, _ := s.supervisor.Status(p.Status.CurrentRevision); !after.Running || after.PID == before.PID || after.Restarts != before.Restarts+1 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if p.Status.Rollback != nil || !p.Status.Activation.Healthy {
		t.Errorf("a program that ends later is no failed activation: %+v", p.Status)
	}

	empty := provider("empty", publish.Stream(t, s.registry, "upgrade/empty", "v1", stream("empty", "")).String())
	s.create(empty)
	s.until(empty, "says that it has no program", func() bool {
		return empty.GetCondition(v1.TypeReady).Reason == "NoProgram" && empty.GetCondition(v1.TypeStalled).Status == corev1.ConditionTrue
	})

	for _, o := range []*v1.Provider{p, empty} {
		if err := s.client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.untilGone(thingDefinition())
}
