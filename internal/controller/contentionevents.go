package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
)

// reportContention returns a function that logs that the manager stops writing an object, and
// records an event of the object. The event is needed because the manager may have stopped writing
// the status of that object.
func reportContention(recorder events.EventRecorder) func(context.Context, contention.Stop) {
	return func(ctx context.Context, s contention.Stop) {
		logging.FromContext(ctx).WarnContext(ctx, "another client keeps changing an object, so the manager does not write it",
			"kind", s.Ref.Kind, "namespace", s.Ref.Namespace, "name", s.Ref.Name, "reason", s.Error())
		o := watch.Metadata(s.Ref.GroupVersionKind())
		o.SetNamespace(s.Ref.Namespace)
		o.SetName(s.Ref.Name)
		o.SetUID(s.Last.UID)
		recorder.Eventf(o, nil, corev1.EventTypeWarning, contention.ErrContended.Name, "Write", "%s", status.Clip(s.Error()))
	}
}
