package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// isKillPoint reports whether a manager is killed at a call: writes of packages, revisions
// and their objects. Writes of status only are excluded, because the next
// reconciliation repeats them.
func isKillPoint(c fault.Call) bool {
	return c.Method != http.MethodGet && c.Method != "WATCH" && !strings.HasSuffix(c.Path, "/status") &&
		!strings.Contains(c.Path, "/events") && !strings.Contains(c.Path, "/locks") &&
		!strings.Contains(c.Path, "/selfsubjectreviews")
}

// If the manager is killed during the upgrade or downgrade of a package with its
// dependencies, the next manager completes it, and the dependent is never established
// without its dependencies.
func TestUpgradeContinuesAfterTheManagerIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a manager for each write")
	}
	s, network := newEnv(t), fault.New(fault.SingleSubject("manager"))
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return network.Transport(fault.Cluster, next) })
	w := startDependencyEnv(t, s, controller.Dependencies{Upgrades: graph.UpgradeOrDowngrade})
	w.release(t, "leaf", "v1.0.0")
	w.release(t, "root", "v1.0.0", "leaf <v2")
	w.release(t, "leaf", "v2.0.0")
	w.release(t, "root", "v2.0.0", "leaf >=v2")
	root := w.provider(t, "root", "v1.0.0")
	w.waitDependency(t, "leaf", "v1.0.0")
	w.stop()

	legs := []struct {
		to   string
		kind fault.Kind
	}{{"v2.0.0", fault.KilledBefore}, {"v1.0.0", fault.KilledAfter}}
	killed := 0
	for call, struck := 0, true; struck && !t.Failed(); call++ {
		struck = false
		for _, leg := range legs {
			t.Run(fmt.Sprintf("to %s, %s %d", leg.to, leg.kind, call), func(t *testing.T) {
				changes := w.recordChanges(t)
				w.setVersion(t, root, leg.to)
				network.Set("manager", fault.Fault{Kind: leg.kind, Side: fault.Cluster, Filter: isKillPoint, Call: call})
				stop := w.start(t)
				wait.Until(t, limit, "the manager is killed, or done", func() (string, bool) {
					if _, hit := network.Injected("manager"); hit {
						struck = true
						killed++
						return "", true
					}
					return "", w.isAt(t, root, leg.to)
				})
				stop()
				network.Clear()
				defer w.start(t)()
				untilSettled(t, w.testEnv, root)
				w.waitDependency(t, "leaf", leg.to)
				w.waitEstablished(t, "root", leg.to)
				changes.checkOrder(t, "root", leg.to, "leaf", leg.to)
			})
		}
	}
	// Of each of the two a revision is made or activated, one deactivated, and a
	// definition written; the leaf itself is moved.
	if killed < 14 {
		t.Errorf("the manager was killed %d times", killed)
	}
	w.assertUnchanged(t)
}

// isAt reports whether a provider is ready at a version.
func (w *dependencyEnv) isAt(t *testing.T, p *v1.Provider, tag string) bool {
	t.Helper()
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	ready := p.GetCondition(v1.TypeReady)
	return strings.HasSuffix(p.Spec.Package, ":"+tag) && ready.Status == corev1.ConditionTrue &&
		ready.ObservedGeneration == p.Generation
}
