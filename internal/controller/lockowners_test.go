package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// lockWrites counts the writes of the Lock since the audit began.
func (w *dependencyEnv) lockWrites() (n int) {
	for _, c := range w.audit.Calls(v1beta1.LockName) {
		if c.Resource == "locks" && c.Method != http.MethodGet {
			n++
		}
	}
	return n
}

// owned returns the objects of a package's active revision according to the Lock: the
// number of names of each kind.
func (w *dependencyEnv) owned(t *testing.T, p v1.Package) string {
	t.Helper()
	lock := &v1beta1.Lock{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
		return err.Error()
	}
	for _, entry := range lock.Packages {
		if entry.Name != p.PackageStatus().CurrentRevision {
			continue
		}
		var out []string
		for _, o := range entry.Owns {
			out = append(out, fmt.Sprintf("%d of %d %s", len(o.Names), o.Count, o.Kind))
		}
		return strings.Join(out, ", ")
	}
	return "no entry"
}

func (w *dependencyEnv) untilOwned(t *testing.T, p v1.Package, want string) {
	t.Helper()
	wait.Until(t, limit, p.GetName()+" owns "+want, func() (string, bool) {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		got := w.owned(t, p)
		return got, got == want
	})
}

// The Lock lists the owners of objects, and an install writes it once for that, not for
// each object.
func TestLockListsOwnersOfObjects(t *testing.T) {
	w := newDependencyEnv(t, "")
	const many = 50
	stream := func(description string, n int) string {
		text := provider("fifty")
		for i := range n {
			text += crd("fifty.test", fmt.Sprintf("Kind%d", i), description)
		}
		return text
	}
	ref, _ := w.registry.push(t, "dep/fifty:v1.0.0", stream("one", many))
	w.waitLocked(t)
	before := w.lockWrites()
	p := env.NewProvider("dep-fifty", ref)
	w.CreateTemporary(t, p)
	w.WaitHealthy(t, p)
	w.untilOwned(t, p, "50 of 50 CustomResourceDefinition")
	if n := w.lockWrites() - before; n > 2 {
		t.Errorf("the Lock was written %d times for one package", n)
	}
	next, _ := w.registry.push(t, "dep/fifty:v1.1.0", stream("two", many-1))
	upgradeTo(t, w.testEnv, p, next)
	w.untilOwned(t, p, "49 of 49 CustomResourceDefinition")
	// One revision lets go before the next one is active, and that one writes then.
	if n := w.lockWrites() - before; n > 5 {
		t.Errorf("the Lock was written %d times for an install and an upgrade", n)
	}
	w.assertUnchanged(t)
}
