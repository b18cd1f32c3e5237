package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// read gives the package with a digest, for what was asked for as image.
func (w *world) read(ctx context.Context, o fetch.Origin, d oci.Digest, image string, policy corev1.PullPolicy) (*xpkg.Package, error) {
	return fetch.Read(ctx, w.content, o, d, image, revision.MayPull(policy))
}
