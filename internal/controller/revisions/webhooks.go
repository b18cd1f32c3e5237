package revisions

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// reconcileWebhooks installs the webhook configurations of an active revision once its runtime is proven
// to serve them, and deletes the configurations of a package without a runtime.
//
// While a runtime restarts, its configurations stay, and their failure policy decides about
// requests. [webhooks.Guard] deletes them if the runtime does not serve for longer.
func (r *Reconciler) reconcileWebhooks(ctx context.Context, in *reconciliation) error {
	runs := in.workload != nil && !in.workload.spec.AwaitingActivation
	switch {
	case runs && in.summary.Ready:
		retry, err := r.installWebhooks(ctx, in)
		if err != nil || !retry.IsZero() {
			in.requeueAt(retry, r.API.Now())
			return err
		}
		return r.deleteWebhooks(ctx, in, webhooks.Except(in.objects.Refs()))
	case !runs || r.runsExternally(in):
		return r.deleteWebhooks(ctx, in, webhooks.Any)
	}
	return nil
}

func (r *Reconciler) deleteWebhooks(ctx context.Context, in *reconciliation, selects func(plan.Live) bool) error {
	return webhooks.Delete(ctx, r.API.Cluster, in.Set, selects)
}

// installWebhooks writes the webhook configurations, after a TLS handshake with the endpoint that
// they name. No other function writes webhook configurations. If the manager cannot reach the
// endpoint, it writes configurations that only cover the package's own resources without a
// handshake, and no others. It returns the time of the next attempt, or zero if the configurations
// are installed; the package stays ready, and its Ready condition reports that they are not.
func (r *Reconciler) installWebhooks(ctx context.Context, in *reconciliation) (retry time.Time, err error) {
	if len(in.webhooks.Changes) == 0 {
		return time.Time{}, nil
	}
	outside, err := in.objects.OutsideWebhookRules()
	if err != nil {
		return time.Time{}, err
	}
	log, service := logging.FromContext(ctx), in.objects.Service()
	err = r.Runtimes.Prober.Check(ctx, webhooks.Endpoint{
		Namespace: service.Namespace, Name: service.Name, Port: desired.WebhookPort, CABundle: string(in.objects.CABundle()),
	})
	if errors.Is(err, webhooks.ErrOutOfReach) && len(outside) == 0 {
		log.InfoContext(
			ctx, "installing webhook configurations without proof that the runtime serves them", "error", err.Error(),
		)
		err = nil
	}
	if errors.Is(err, webhooks.ErrNotServing) || errors.Is(err, webhooks.ErrOutOfReach) {
		log.InfoContext(
			ctx, "not installing webhook configurations: the runtime does not serve them yet", "error", err.Error(),
		)
		r.API.Status.Events.Eventf(in.Revision,
			nil, corev1.EventTypeWarning, string(v1.ReasonWebhooksNotInstalled), "Install",
			"webhook configurations wait until the runtime serves them: %s", status.Clip(err.Error()))
		in.summary.Reason = v1.ReasonWebhooksNotInstalled
		in.summary.Message = fmt.Sprintf("Installed, except for %s: the runtime does not serve the webhooks yet. An event %s of the revision names the cause.",
			wording.Count(len(in.webhooks.Changes), "webhook configuration"), v1.ReasonWebhooksNotInstalled)
		return r.API.Now().Add(r.backoff(in.Revision.GetCondition(v1.TypeRuntimeHealthy))), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return time.Time{}, r.apply(ctx, in, in.webhooks)
}
