package firstgen

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A paused install object only gets a condition. Without the annotation, its reconciliation writes.
func TestPausedInstallObjectsCauseNoWrites(t *testing.T) {
	for _, kind := range packagesv1alpha1.InstallKinds() {
		for _, isPaused := range []bool{true, false} {
			t.Run(fmt.Sprint(kind, isPaused), func(t *testing.T) {
				in := newInstall(kind)
				in.SetAnnotations(map[string]string{v1.AnnotationPaused: fmt.Sprint(isPaused)})
				in.InstallSpec().Package = "r.example.org/acme/thing:v1"
				base, writes := countingBase(t, in)
				reconcile := (&ClusterInstalls{base}).Reconcile
				if kind == packagesv1alpha1.PackageInstallKind {
					reconcile = (&NamespaceInstalls{base}).Reconcile
				}
				request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(in)}
				_, err := reconcile(t.Context(), request)
				if err := base.API.Client.Get(t.Context(), request.NamespacedName, in); err != nil {
					t.Fatal(err)
				}
				synced := in.GetCondition(v1.TypeSynced)
				if got := synced.Status == corev1.ConditionFalse && synced.Reason == v1.ReasonPaused; got != isPaused {
					t.Errorf("the condition is %+v (%v)", synced, err)
				}
				if (*writes == 0) != isPaused {
					t.Errorf("%d writes (%v)", *writes, err)
				}
			})
		}
	}
}

// An install object that the manager does not reconcile has no condition that its next reconciliation does not
// maintain.
func TestBlockedInstallObjectsHaveOnlyTheirOwnConditions(t *testing.T) {
	for _, kind := range packagesv1alpha1.InstallKinds() {
		t.Run(kind, func(t *testing.T) {
			in := newInstall(kind)
			in.InstallSpec().Package = "r.example.org/acme/thing:v1"
			base, writes := countingBase(t, in)
			base.API.Status.Blocked = func(
				context.Context, string,
			) error {
				return crossplane.ErrForeignManager.New(nil, "core runs")
			}
			reconcile := (&ClusterInstalls{base}).Reconcile
			if kind == packagesv1alpha1.PackageInstallKind {
				reconcile = (&NamespaceInstalls{base}).Reconcile
			}
			if _, err := reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(in)}); err != nil {
				t.Fatal(err)
			}
			if err := base.API.Client.Get(t.Context(), client.ObjectKeyFromObject(in), in); err != nil {
				t.Fatal(err)
			}
			if ready := in.GetCondition(v1.TypeReady); string(ready.Reason) != crossplane.ErrForeignManager.Name || *writes > 0 {
				t.Errorf("the condition is %+v, after %d writes", ready, *writes)
			}
			if healthy := in.GetCondition(v1.TypeHealthy); healthy.Status != corev1.ConditionUnknown {
				t.Errorf("the object has the condition %+v", healthy)
			}
		})
	}
}

// countingBase returns the base of controllers in the namespace of an install object, whose client counts and fails the
// writes of everything but status.
func countingBase(t *testing.T, in packagesv1alpha1.Install) (base Base, writes *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), packagesv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	writes = new(int)
	write := func() error {
		*writes++
		return errors.New("a write")
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(in).WithStatusSubresource(in).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return write() },
			Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return write() },
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return write()
			},
		}).Build()
	base = Base{
		Namespace: in.GetNamespace(), Options: Options{NamespacedPackages: []string{All}},
		Packages: state.Packages{Content: anyContent{}, Origins: anyContent{}},
	}
	base.API = kube.API{Client: api, Live: api, Status: &status.Reporter{
		Client: api, Events: events.NewFakeRecorder(10), Writes: &expectations.Versions{Now: time.Now}, Now: time.Now,
		CountFailure: func(string) {}, Blocked: func(context.Context, string) error { return nil },
	}}
	return base, writes
}

// anyContent contains every package, whose scope is a namespace.
type anyContent struct{ sourcetest.NoSignatures }

func (anyContent) Resolve(context.Context, fetch.Origin, time.Duration) (oci.Digest, error) {
	return oci.DigestOf(nil), nil
}

func (anyContent) Read(context.Context, fetch.Origin, oci.Digest, bool) (*xpkg.Package, error) {
	pkg := &xpkg.Package{}
	pkg.Meta.Annotations = map[string]string{xpkg.AnnotationPermissionScope: string(firstgen.ScopeNamespaced)}
	return pkg, nil
}

func (anyContent) Named(context.Context, string) (oci.Digest, error) { return oci.DigestOf(nil), nil }

func (anyContent) Locate(
	_ context.Context, image string, _ []corev1.LocalObjectReference, _ corev1.PullPolicy,
) (fetch.Origin, imageconfig.Route, error) {
	ref, err := oci.ParseReference(image, oci.ParseOptions{})
	return fetch.Plain(ref), imageconfig.Route{Image: image}, err
}

func (anyContent) Rewrites(context.Context) (func(string) string, error) {
	return func(repository string) string { return repository }, nil
}
