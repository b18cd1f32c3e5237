//go:build linux

package attack_test

import (
	"math"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A client that may write the Lease of the manager cannot keep the manager from working: the manager takes the Lease
// back while it works, and the control plane starts while another holder has it.
func TestForeignLeaseDoesNotStopTheControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane: skipped with -short")
	}
	p := newPlane(t, program.Build(t))
	p.seizeLease(t)
	p.untilLeaseIsOwn(t)

	// A manager that stands still does not take the Lease back before the next start.
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.seizeLease(t)
	p.restart(t, true)
	p.untilLeaseIsOwn(t)
}

func (p *plane) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := p.client.Get(
		t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: leader.DefaultLease}, lease,
	); err != nil {
		t.Fatal(err)
	}
	return lease
}

// seizeLease gives the Lease another holder, which renews it for the last time.
func (p *plane) seizeLease(t *testing.T) {
	t.Helper()
	wait.Until(t, limit, "the Lease has another holder", func() (string, bool) {
		lease := p.lease(t)
		now := lease.Spec.RenewTime.DeepCopy()
		now.Time = time.Now()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = new("hostile"),
			new(int32(math.MaxInt32)), now
		err := p.client.Update(t.Context(), lease)
		return "", err == nil
	})
}

func (p *plane) untilLeaseIsOwn(t *testing.T) {
	t.Helper()
	wait.Until(t, limit, "the manager holds its Lease", func() (string, bool) {
		holder := *p.lease(t).Spec.HolderIdentity
		return holder, holder == "xpkg-up"
	})
}
