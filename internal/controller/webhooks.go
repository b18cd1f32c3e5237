package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// checkWebhooksAllowed fails, before anything of a revision is written, when its webhooks
// cover resources outside of its own API groups and the package has no consent to that. It
// deletes the configurations of a revision whose consent was withdrawn. It returns the rules
// outside of the groups.
func (r *revisionReconciler) checkWebhooksAllowed(ctx context.Context, f family, objects *desired.Objects) ([]desired.WebhookRule, error) {
	f.rev.RevisionStatus().UnallowedWebhooks = nil
	rules, err := objects.OutsideWebhookRules()
	if err != nil {
		return nil, err
	}
	unallowed := webhooks.Unallowed(f.pkg, rules)
	if len(unallowed) == 0 {
		return rules, nil
	}
	if err := r.deleteSelectedWebhooks(ctx, f, f.requester().Controls); err != nil {
		return nil, err
	}
	f.rev.RevisionStatus().UnallowedWebhooks = webhooks.Strings(unallowed)
	name := lower(r.kind) + "/" + f.pkg.GetName()
	return nil, webhooks.NotAllowed(name, webhooks.Strings(unallowed), "xpkg approve "+name)
}

// onAllowedWebhooks maps a package whose consent to webhooks changes to its active revision.
func (w *world) onAllowedWebhooks(kind string) handler.Funcs {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
		if e.ObjectOld.GetAnnotations()[webhooks.AnnotationAllowed] == e.ObjectNew.GetAnnotations()[webhooks.AnnotationAllowed] {
			return
		}
		for _, rev := range w.revisionsOf(ctx, kind, client.MatchingLabels{v1.LabelPackage: e.ObjectNew.GetName()}) {
			if active(rev) {
				q.Add(request(rev))
			}
		}
	}}
}

// reconcileWebhooks installs the webhook configurations of an active revision once its
// runtime is proven to serve, and deletes those of a package that nothing runs.
//
// While a runtime restarts, its configurations stay, and their failure policy decides about
// requests. [webhooks.Guard] deletes them when it does not serve for longer.
//
// It returns when to try again, or zero for never.
func (r *revisionReconciler) reconcileWebhooks(
	ctx context.Context, log *slog.Logger, f family, objects *desired.Objects, held plan.Plan, j *job, healthy, outside bool,
) (again time.Time, err error) {
	runs := j != nil && !j.program.AwaitingActivation
	switch {
	case runs && healthy:
		if again, err := r.installWebhooks(ctx, log, f, objects, held, outside); err != nil || !again.IsZero() {
			return again, err
		}
		return time.Time{}, r.deleteWebhooks(ctx, f, objects.Refs())
	case !runs || r.programs.choice.Of(r.kind, f.pkg.GetName()) == runtime.External:
		return time.Time{}, r.deleteWebhooks(ctx, f, nil)
	}
	return time.Time{}, nil
}

// installWebhooks carries out the changes of webhook configurations, after a TLS handshake
// with the endpoint that they name. No other function writes webhook configurations. Outside
// reports whether they cover resources outside of the package's own API groups: without
// proof they are not installed, while others are when the endpoint is out of reach.
func (r *revisionReconciler) installWebhooks(
	ctx context.Context, log *slog.Logger, f family, objects *desired.Objects, held plan.Plan, outside bool,
) (again time.Time, err error) {
	if len(held.Changes) == 0 {
		return time.Time{}, nil
	}
	service := objects.Program()
	err = r.prober.Check(ctx, webhooks.Endpoint{
		Namespace: service.Namespace, Name: service.Name, Port: desired.WebhookPort, CABundle: string(objects.Authorities()),
	})
	if errors.Is(err, webhooks.ErrOutOfReach) && !outside {
		log.InfoContext(ctx, "webhook configurations are installed without proof that the runtime serves them", "error", err.Error())
		err = nil
	}
	if errors.Is(err, webhooks.ErrNotServing) || errors.Is(err, webhooks.ErrOutOfReach) {
		log.InfoContext(ctx, "webhook configurations wait: the runtime does not serve webhooks", "error", err.Error())
		r.events.Eventf(f.rev, nil, corev1.EventTypeWarning, "WebhooksNotInstalled", "Install", "webhook configurations wait until the runtime serves them: %s", clip(err.Error()))
		return r.now().Add(r.patience(f.rev)), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return time.Time{}, r.carry(ctx, log, f, objects, held)
}

// deleteWebhooks deletes the webhook configurations that revisions of a package have
// installed, except for some.
func (w *world) deleteWebhooks(ctx context.Context, f family, except []plan.Ref) error {
	return w.deleteSelectedWebhooks(ctx, f, func(l plan.Live) bool { return !slices.Contains(except, l.Ref) })
}

func (w *world) deleteSelectedWebhooks(ctx context.Context, f family, selects func(plan.Live) bool) error {
	var refs []plan.Ref
	for _, rev := range append(slices.Clone(f.siblings), f.rev) {
		for _, ref := range revision.Objects(rev) {
			if plan.IsWebhookConfiguration(ref) && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	live, err := w.cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return err
	}
	for _, c := range plan.Uninstall(live, f.requester()).Changes {
		if c.Action != plan.Delete || !selects(live[c.Ref]) {
			continue // Another owner keeps it.
		}
		w.log.InfoContext(ctx, "webhook configuration deleted", "kind", c.Ref.Kind, "name", c.Ref.Name, "package", f.pkg.GetName())
		o := metadataOf(c.Ref.GroupVersionKind())
		o.SetName(c.Ref.Name)
		if err := w.client.Delete(ctx, o, client.Preconditions{UID: &c.UID, ResourceVersion: &c.ResourceVersion}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", c.Ref.Kind, c.Ref.Name, err)
		}
	}
	return nil
}
