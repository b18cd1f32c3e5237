package packages

import (
	"context"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// prepareRollback deletes the webhook configurations of a package that is about to be rolled back,
// because possibly no runtime serves them during the rollback. The next reconciliation rolls the
// package back, after the decision is written to the status.
func (r *Reconciler) prepareRollback(
	ctx context.Context, p v1.Package, revisions []v1.PackageRevision,
) (revision.Summary, error) {
	if err := r.deleteWebhooks(ctx, p, revisions); err != nil {
		return revision.Summary{}, err
	}
	return r.Rollback.Summarize(p, revision.Summary{}), nil
}

// deleteWebhooks deletes the webhook configurations of a package.
func (r *Reconciler) deleteWebhooks(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) error {
	set := revision.Set{Revision: p.NewRevision(), Package: p, Siblings: revisions}
	return webhooks.Delete(ctx, r.API.Cluster, set, webhooks.Any)
}
