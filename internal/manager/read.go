package manager

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// read gives the package with a digest, for what was asked for as image.
func (w *world) read(ctx context.Context, o content.Origin, d oci.Digest, image string, policy corev1.PullPolicy) (*format.Package, error) {
	return content.Read(ctx, w.content, o, d, image, revision.MayPull(policy))
}
