package packages

import (
	"context"
	"errors"
	"io"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// unchanging is a cluster in which nothing happens.
type unchanging struct{ client.Client }

// Get implements client.Reader.
func (unchanging) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// Ctrl-C during --wait is an interruption, and not a package that is not healthy in time.
//
// hardening: L3
func TestCtrlCEndsAWaitAsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := waitHealthy(ctx, unchanging{}, v1.NewPackage("Provider"), terminal.NewProgress(io.Discard))
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrWait) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := waitHealthy(expired, unchanging{}, v1.NewPackage("Provider"), terminal.NewProgress(io.Discard)); !errors.Is(err, ErrWait) {
		t.Errorf("got %v, want %s", err, ErrWait.Name)
	}
}
