package revisions

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
)

// RuntimeObjects returns the kinds of the objects of runtimes: Deployments, and then those that processes have, too.
func RuntimeObjects() []client.Object {
	return []client.Object{
		&appsv1.Deployment{},
		watch.Metadata(corev1.SchemeGroupVersion.WithKind("ServiceAccount")),
		watch.Metadata(corev1.SchemeGroupVersion.WithKind("Service")),
	}
}

// WatchedRuntimeObjects returns the kinds of the objects of the runtimes in a set.
func WatchedRuntimeObjects(set *runtimes.Set) []client.Object {
	switch {
	case set.ByName[runtime.Deployment] != nil:
		return RuntimeObjects()
	case set.ByName[runtime.Process] != nil:
		return RuntimeObjects()[1:]
	}
	return nil
}

// RuntimeConfigs returns the kinds that configure runtimes.
func RuntimeConfigs() []client.Object {
	return []client.Object{&v1beta1.DeploymentRuntimeConfig{}, &v1alpha1.ControllerConfig{}}
}

// watchRuntimes watches runtimes, their certificates, and their configurations.
func (r *Reconciler) watchRuntimes(b *builder.Builder) {
	if !runtimes.HasRuntime(r.Kind) {
		return
	}
	c := r.API.Client
	b.WatchesMetadata(watch.Secrets(), enqueueForCertificate(c, r.Kind), watch.InNamespace(r.Packages.Namespace))
	if len(r.Runtimes.Used()) == 0 {
		return
	}
	for _, config := range RuntimeConfigs() {
		b.Watches(config, enqueueForRuntimeConfig(c, r.Kind), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	if r.Runtimes.Changes != nil {
		b.WatchesRawSource(source.Channel(r.Runtimes.Events[r.Kind], enqueueForProcess(c, r.Kind)))
	}
	for _, o := range WatchedRuntimeObjects(r.Runtimes.Set) {
		b.Watches(o, enqueueForRuntimeObject(c, r.Kind), builder.WithPredicates(runtimeChanged()))
	}
}

// enqueueForProcess enqueues the active revision of the package whose process has changed.
func enqueueForProcess(c client.Reader, kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		rev := v1.NewPackage(kind).NewRevision()
		if c.Get(ctx, client.ObjectKeyFromObject(o), rev) != nil {
			return nil
		}
		return activeSiblings(ctx, c, kind, rev)
	})
}

// runtimeChanged admits deletions, and updates of Deployments that change the generation or a
// condition. It rejects creations, which are the manager's own, and changes of the numbers of Pods.
func runtimeChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, ok := e.ObjectOld.(*appsv1.Deployment)
			if !ok {
				return false
			}
			now := e.ObjectNew.(*appsv1.Deployment)
			return old.Generation != now.Generation || old.Status.ObservedGeneration != now.Status.ObservedGeneration ||
				!equality.Semantic.DeepEqual(timelessConditions(old), timelessConditions(now))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// timelessConditions returns the conditions of a Deployment without their times.
func timelessConditions(d *appsv1.Deployment) []appsv1.DeploymentCondition {
	out := slices.Clone(d.Status.Conditions)
	for i := range out {
		out[i] = appsv1.DeploymentCondition{Type: out[i].Type, Status: out[i].Status, Reason: out[i].Reason}
	}
	return out
}

// enqueueForRuntimeObject enqueues the active revisions of the packages that own an object of a runtime, also if
// another revision owns it: the active one may wait until it is deleted. An object without owners, such as a
// ServiceAccount that a user created, may belong to the runtime of any revision.
func enqueueForRuntimeObject(c client.Reader, kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		owners := o.GetOwnerReferences()
		if _, isDeployment := o.(*appsv1.Deployment); len(owners) == 0 && !isDeployment {
			return activeRevisions(ctx, c, kind, func(v1.PackageRevision) bool { return true })
		}
		var out []reconcile.Request
		for _, owner := range owners {
			rev := v1.NewPackage(kind).NewRevision()
			switch {
			case owner.Kind == kind:
				rev.SetLabels(map[string]string{v1.LabelPackage: owner.Name})
			case owner.Kind != v1.RevisionKind(kind) || c.Get(ctx, types.NamespacedName{Name: owner.Name}, rev) != nil:
				continue
			}
			out = append(out, activeSiblings(ctx, c, kind, rev)...)
		}
		return out
	})
}

// enqueueForRuntimeConfig enqueues the active revisions that may use a runtime configuration: revisions
// that name it, and revisions to which an ImageConfig assigns one.
func enqueueForRuntimeConfig(c client.Reader, kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		_, controllerConfig := o.(*v1alpha1.ControllerConfig)
		return activeRevisions(
			ctx, c, kind, func(rev v1.PackageRevision) bool { return mayUse(rev, o.GetName(), controllerConfig) },
		)
	})
}

func mayUse(rev v1.PackageRevision, config string, controllerConfig bool) bool {
	spec := rev.RuntimeSpec()
	if controllerConfig {
		return spec.ControllerConfigRef != nil && spec.ControllerConfigRef.Name == config
	}
	named := spec.RuntimeConfigRef != nil && spec.RuntimeConfigRef.Name == config
	return named || config == v1.DefaultRuntimeConfigName ||
		slices.ContainsFunc(rev.RevisionStatus().AppliedImageConfigRefs, func(r v1.ImageConfigRef) bool {
			return r.Reason == v1.ImageConfigReasonRuntime
		})
}

// externalRuntimeReported admits changes of the RuntimeHealthy condition, with which an external
// runtime reports its health.
func externalRuntimeReported(choice runtime.Choice, kind string) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if choice.Of(kind, e.ObjectNew.GetLabels()[v1.LabelPackage]) != runtime.External {
				return false
			}
			old, now := e.ObjectOld.(v1.PackageRevision), e.ObjectNew.(v1.PackageRevision)
			return old.GetCondition(v1.TypeRuntimeHealthy) != now.GetCondition(v1.TypeRuntimeHealthy)
		},
	}
}

// enqueueForCertificate enqueues the active revision whose runtime has a certificate in a Secret.
// The revision then repairs a damaged certificate, or distributes a new CA bundle.
func enqueueForCertificate(c client.Reader, kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		list := v1.NewPackage(kind).NewRevisionList()
		if c.List(ctx, list, client.MatchingFields{bySecret: o.GetName()}) != nil {
			return nil
		}
		var out []reconcile.Request
		for _, rev := range list.Revisions() {
			if revision.IsActive(rev) {
				out = append(out, watch.Request(rev))
			}
		}
		return out
	})
}

// bySecret is the index of revisions by the Secrets of their certificates.
const bySecret = "spec.tlsSecretNames"

// indexSecrets creates the index bySecret.
func indexSecrets(ctx context.Context, mgr ctrl.Manager, kind string) error {
	if !runtimes.HasRuntime(kind) {
		return nil
	}
	return mgr.GetFieldIndexer().
		IndexField(ctx, v1.NewPackage(kind).NewRevision(), bySecret, func(o client.Object) []string {
			spec := o.(v1.PackageRevision).RuntimeSpec()
			var out []string
			for _, name := range []*string{spec.TLSServerSecretName, spec.TLSClientSecretName} {
				if name != nil {
					out = append(out, *name)
				}
			}
			return out
		})
}
