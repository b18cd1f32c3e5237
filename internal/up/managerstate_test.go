//go:build unix

package up_test

import (
	"context"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// The status reports a manager that has ended, with the reason and the fix, until it runs again.
func TestStatusReportsTheManager(t *testing.T) {
	needControlPlane(t)
	failure := errcode.Code{Name: "Test", Class: errcode.Conflict, Fix: "Repair it."}
	end, again := make(chan struct{}), make(chan struct{})
	runs := make(chan chan struct{}, 2)
	runs <- end
	runs <- again
	dir := t.TempDir()
	start(t, up.Options{Dir: dir, Manager: func(ctx context.Context, env up.Env) error {
		if until := <-runs; until == end {
			env.Ready()
			<-end
			return failure.New(nil, "the manager broke")
		}
		<-again
		env.Ready()
		<-ctx.Done()
		return nil
	}})
	until := func(what string, is func(up.Check) bool) {
		t.Helper()
		wait.Until(t, limit, what, func() (string, bool) {
			report, err := up.Examine(t.Context(), dir)
			if err != nil || len(report.Checks) != 3 {
				t.Fatalf("%+v, %v", report, err)
			}
			c := report.Checks[2]
			return c.Error, c.Name == "package manager" && is(c)
		})
	}
	until("the manager works", func(c up.Check) bool { return c.Healthy && c.Error == "" })
	close(end)
	until("the manager has ended", func(c up.Check) bool {
		return !c.Healthy && strings.Contains(c.Error, "the manager broke") && c.Fix == "Repair it."
	})
	close(again)
	until("the manager works again", func(c up.Check) bool { return c.Healthy && c.Error == "" && c.Fix == "" })
}
