package packages

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/packages/undomark"
	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// repeat requests a package as it is: no other command undoes its last change, and if the package has failed, the
// manager tries it again at once. It returns the word for the result.
func repeat(ctx context.Context, cluster client.Client, p v1.Package) (word string, err error) {
	if err := undomark.Remove(ctx, cluster, p); err != nil {
		return "", err
	}
	err = inventory.PatchMetadata(ctx, cluster, p, func() (map[string]any, error) {
		if word = "unchanged"; !hasFailed(p) {
			return nil, nil
		}
		word = "retried"
		return map[string]any{"annotations": map[string]any{v1.AnnotationRetry: time.Now().UTC().Format(time.RFC3339Nano)}}, nil
	})
	return word, err
}

// hasFailed reports whether the last attempt to install the requested version of a package failed, other than that it
// waits for a decision of a user.
func hasFailed(p v1.Package) bool {
	ready := p.GetCondition(v1.TypeReady)
	switch {
	case v1.IsPaused(p), ready.ObservedGeneration != p.GetGeneration():
		return false
	case revision.PolicyOf(p).Back != "":
		return true
	}
	code, known := errcodes.Named(string(ready.Reason))
	return ready.Status == corev1.ConditionFalse && known && !code.Approval
}
