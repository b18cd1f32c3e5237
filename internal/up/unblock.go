package up

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

const (
	// kubeconfigName is the file that the control plane writes for the administrator.
	kubeconfigName = "kubeconfig"
	// unblockPause is the pause between two attempts while the API server starts.
	unblockPause = 50 * time.Millisecond
)

// Unblock deletes objects that may block all writes of a cluster, such as configurations of
// webhooks that do not serve. It fails while the API server does not respond.
type Unblock func(ctx context.Context, kubeconfig string, log io.Writer) error

// retryUnblock calls unblock until it succeeds or ctx ends. Without it, an object that
// blocks every write would keep the control plane from becoming ready. The control plane
// may write the kubeconfig again at any time, with another port.
func retryUnblock(ctx context.Context, dir *datadir.Dir, unblock Unblock, log io.Writer) {
	if _, err := os.Stat(dir.File(kubeconfigName)); err != nil || unblock == nil {
		return // A new data directory contains no object that blocks writes.
	}
	for unblock(ctx, dir.File(kubeconfigName), log) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(unblockPause):
		}
	}
}
