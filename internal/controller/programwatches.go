package controller

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
)

// watchPrograms makes changes of programs, and of what configures them, a reason to
// look at their revisions.
func (w *world) watchPrograms(b *builder.Builder, kind string) *builder.Builder {
	if !hasProgram(kind) || len(w.programs.used()) == 0 {
		return b
	}
	for _, config := range runtimeConfigs() {
		b = b.Watches(config, w.onRuntimeConfig(kind), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	if w.programs.changes != nil {
		b = b.WatchesRawSource(ctrlsource.Channel(w.processes[kind], w.onProcess(kind)))
	}
	if w.programs.runtimes[runtime.Deployment] == nil {
		return b
	}
	for _, o := range programObjects() {
		b = b.Watches(o, w.onProgramObject(kind), builder.WithPredicates(programChanged()))
	}
	return b
}

// tellProcesses passes changes of processes on to the controllers of both kinds of
// revision with a program.
func (w *world) tellProcesses(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case name, ok := <-w.programs.changes:
			if !ok {
				return nil
			}
			for _, to := range w.processes {
				select {
				case to <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
				case <-ctx.Done():
					return nil
				}
			}
		}
	}
}

// onProcess maps a process to its revision, if that is of the kind.
func (w *world) onProcess(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		rev := v1.NewPackage(kind).NewRevision()
		if w.client.Get(ctx, client.ObjectKeyFromObject(o), rev) != nil {
			return nil
		}
		return w.activeSiblings(ctx, kind, rev)
	})
}

// programChanged lets through what changes how a program does: what the manager itself
// has just made, or counts of pods, do not.
func programChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, deployed := e.ObjectOld.(*appsv1.Deployment)
			if !deployed {
				return false
			}
			now := e.ObjectNew.(*appsv1.Deployment)
			return old.Generation != now.Generation || old.Status.ObservedGeneration != now.Status.ObservedGeneration ||
				!equality.Semantic.DeepEqual(conditions(old), conditions(now))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// conditions are those of a Deployment without their times.
func conditions(d *appsv1.Deployment) []appsv1.DeploymentCondition {
	out := slices.Clone(d.Status.Conditions)
	for i := range out {
		out[i] = appsv1.DeploymentCondition{Type: out[i].Type, Status: out[i].Status, Reason: out[i].Reason}
	}
	return out
}

// onProgramObject maps an object of a program to the active revision of its package:
// also one of another revision, which may wait for it to go.
func (w *world) onProgramObject(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, owner := range o.GetOwnerReferences() {
			if owner.Kind != v1.RevisionKind(kind) {
				continue
			}
			rev := v1.NewPackage(kind).NewRevision()
			if w.client.Get(ctx, types.NamespacedName{Name: owner.Name}, rev) == nil {
				out = append(out, w.activeSiblings(ctx, kind, rev)...)
			}
		}
		return out
	})
}

// activeSiblings are the active revisions of the package of a revision.
func (w *world) activeSiblings(ctx context.Context, kind string, rev v1.PackageRevision) []reconcile.Request {
	var out []reconcile.Request
	for _, sibling := range w.revisionsOf(ctx, kind, client.MatchingLabels{v1.LabelPackage: rev.GetLabels()[v1.LabelPackage]}) {
		if active(sibling) {
			out = append(out, request(sibling))
		}
	}
	return out
}

// onRuntimeConfig maps a configuration of programs to the active revisions that could
// use it: those that name it, and those of which an ImageConfig may say that they do.
func (w *world) onRuntimeConfig(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		_, old := o.(*v1alpha1.ControllerConfig)
		var out []reconcile.Request
		for _, rev := range w.revisionsOf(ctx, kind) {
			if active(rev) && configuredBy(rev, o.GetName(), old) {
				out = append(out, request(rev))
			}
		}
		return out
	})
}

func configuredBy(rev v1.PackageRevision, name string, old bool) bool {
	spec := rev.RuntimeSpec()
	if old {
		return spec.ControllerConfigRef != nil && spec.ControllerConfigRef.Name == name
	}
	named := spec.RuntimeConfigRef != nil && spec.RuntimeConfigRef.Name == name
	return named || name == v1.DefaultRuntimeConfigName || slices.ContainsFunc(rev.RevisionStatus().AppliedImageConfigRefs, func(r v1.ImageConfigRef) bool {
		return r.Reason == v1.ImageConfigReasonRuntime
	})
}

// reported lets through what somebody else says of a program that he runs.
func (w *world) reported(kind string) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if w.programs.choice.Of(kind, e.ObjectNew.GetLabels()[v1.LabelPackage]) != runtime.External {
				return false
			}
			was, is := e.ObjectOld.(v1.PackageRevision).GetCondition(v1.TypeRuntimeHealthy), e.ObjectNew.(v1.PackageRevision).GetCondition(v1.TypeRuntimeHealthy)
			return was != is
		},
	}
}
