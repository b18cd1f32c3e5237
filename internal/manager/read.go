package manager

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// read gives the package with a digest. What is never pulled and not in the cache
// any more may still lie in it as a file, under the name that was asked for.
func (w *world) read(ctx context.Context, o content.Origin, d oci.Digest, image string, policy corev1.PullPolicy) (*format.Package, error) {
	pkg, err := w.content.Read(ctx, o, d, revision.MayPull(policy))
	if revision.MayPull(policy) || !content.ErrNotCached.Is(err) {
		return pkg, err
	}
	if named, nerr := w.content.Named(ctx, image); nerr != nil || named != d {
		return nil, err
	}
	return w.content.Read(ctx, o, d, false)
}
