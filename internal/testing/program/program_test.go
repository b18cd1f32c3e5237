package program_test

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/usage"
)

func TestManager(t *testing.T) {
	kubeconfig := cluster.Kubeconfig(t)
	path, cache := program.Build(t), t.TempDir()
	m := program.Start(t, path, kubeconfig, cache)
	if u, err := usage.Of(m.PID()); err == nil && u.Resident == 0 {
		t.Errorf("a manager that runs uses no memory: %+v", u)
	}
	if !strings.Contains(m.Log(), "permissive CRDs") {
		t.Errorf("the log is not the manager's:\n%s", m.Log())
	}
	m.Stop(t)
	m = program.Start(t, path, kubeconfig, cache)
	m.Kill()
	m.Kill()
}
