package manager

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
)

// webhooks brings the webhook configurations of an active revision into the cluster
// when its program answers, and takes away those that nobody answers: an API server
// that has to ask, and gets no answer, refuses its users.
//
// While a program that runs here does not answer, what is there stays: it may be about
// to answer again, and its author has said what becomes of writes until then.
//
// It gives when to look again for something that nobody tells of; zero for never.
func (r *revisionReconciler) webhooks(ctx context.Context, log *slog.Logger, f family, objects *desired.Objects, held plan.Plan, j *job, healthy bool) (again time.Time, err error) {
	runs := j != nil && !j.program.AwaitingActivation
	switch {
	case runs && healthy:
		if again, err := r.hook(ctx, log, f, objects, held); err != nil || !again.IsZero() {
			return again, err
		}
		return time.Time{}, r.unhook(ctx, log, f, objects.Refs())
	case !runs || r.programs.choice.Of(r.kind, f.pkg.GetName()) == runtime.External:
		return time.Time{}, r.unhook(ctx, log, f, nil)
	}
	return time.Time{}, nil
}

// hook carries out what was held, once something leads to the program.
func (r *revisionReconciler) hook(ctx context.Context, log *slog.Logger, f family, objects *desired.Objects, held plan.Plan) (again time.Time, err error) {
	if len(held.Changes) == 0 {
		return time.Time{}, nil
	}
	service := objects.Program()
	led, err := r.leads(ctx, service)
	if err != nil {
		return time.Time{}, err
	}
	if !led {
		log.InfoContext(ctx, "webhook configurations wait: there is no Service that leads to the program", "service", service.Name, "namespace", service.Namespace)
		return r.now().Add(servicePoll), nil
	}
	return time.Time{}, r.carry(ctx, log, f, objects, held)
}

// servicePoll is how often one looks whether the Service of a program is there.
const servicePoll = time.Minute

// leads reports whether there is a Service that leads to the program. There is none for
// a process of a machine without an address, nor where somebody else runs the program
// and has not made one.
func (r *revisionReconciler) leads(ctx context.Context, service desired.Service) (bool, error) {
	o := metadataOf(corev1.SchemeGroupVersion.WithKind("Service"))
	err := r.live.Get(ctx, client.ObjectKey{Namespace: service.Namespace, Name: service.Name}, o)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look for the Service of the program: %w", err)
	}
	return err == nil, nil
}

// unhook deletes the webhook configurations that revisions of the package have
// established, but for those that stay.
func (r *revisionReconciler) unhook(ctx context.Context, log *slog.Logger, f family, stay []plan.Ref) error {
	var refs []plan.Ref
	for _, rev := range append(slices.Clone(f.siblings), f.rev) {
		for _, ref := range revision.Objects(rev) {
			if plan.IsWebhookConfiguration(ref) && !slices.Contains(stay, ref) && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	live, err := r.cluster.Metadata(ctx, refs)
	if err != nil && !apply.ErrKindNotServed.Is(err) {
		return err
	}
	for _, c := range plan.Uninstall(live, f.requester()).Changes {
		if c.Action != plan.Delete {
			continue // Somebody else owns it too.
		}
		log.InfoContext(ctx, "a webhook configuration is taken away, since no program answers it", "kind", c.Ref.Kind, "name", c.Ref.Name)
		o := metadataOf(c.Ref.GroupVersionKind())
		o.SetName(c.Ref.Name)
		if err := r.client.Delete(ctx, o, client.Preconditions{UID: &c.UID, ResourceVersion: &c.ResourceVersion}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take away %s %s: %w", c.Ref.Kind, c.Ref.Name, err)
		}
	}
	return nil
}
