package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xpkg-dev/xpkg/examples/provider-hello/api/v1alpha1"
)

// reconciler writes the greetings.
type reconciler struct {
	client client.Client
}

// setup watches greetings and the configs that they use.
func (r *reconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Greeting{}).
		Watches(&v1alpha1.ProviderConfig{}, handler.EnqueueRequestsFromMapFunc(r.users)).
		Complete(r)
}

// Reconcile updates the status of one greeting.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	g := &v1alpha1.Greeting{}
	if err := r.client.Get(ctx, req.NamespacedName, g); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	config, err := r.config(ctx, configName(g.Spec))
	if err != nil {
		return ctrl.Result{}, err
	}
	status := observe(g, config)
	if equality.Semantic.DeepEqual(status, g.Status) {
		return ctrl.Result{}, nil
	}
	g.Status = status
	return ctrl.Result{}, r.client.Status().Update(ctx, g)
}

// config returns the ProviderConfig with the name, or nil if there is none.
func (r *reconciler) config(ctx context.Context, name string) (*v1alpha1.ProviderConfig, error) {
	config := &v1alpha1.ProviderConfig{}
	err := r.client.Get(ctx, types.NamespacedName{Name: name}, config)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return config, err
}

// users returns the greetings that use a ProviderConfig.
func (r *reconciler) users(ctx context.Context, config client.Object) []reconcile.Request {
	all := &v1alpha1.GreetingList{}
	if err := r.client.List(ctx, all); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list the greetings of a ProviderConfig", "name", config.GetName())
		return nil
	}
	var out []reconcile.Request
	for _, g := range all.Items {
		if configName(g.Spec) == config.GetName() {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: g.Name}})
		}
	}
	return out
}
