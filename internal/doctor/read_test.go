package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// Install objects and the Packages of users are facts, and records of install objects are not.
func TestReadFirstGeneration(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	object := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	notReady := func(reason v1.ConditionReason) v1.Condition {
		return v1.Condition{Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: reason, Message: "why"}
	}
	in := &packagesv1alpha1.ClusterPackageInstall{ObjectMeta: object("failed")}
	in.SetConditions(metav1.Time{}, notReady("NoProvider"))
	waits := &packagesv1alpha1.PackageInstall{ObjectMeta: object("waits")}
	waits.Status.Provider = "boats"
	waits.SetConditions(metav1.Time{}, notReady(packagesv1alpha1.ReasonCreating))
	record := &packagesv1alpha1.Package{ObjectMeta: object("failed")}
	record.OwnerReferences = []metav1.OwnerReference{{Kind: packagesv1alpha1.ClusterPackageInstallKind, Name: "failed"}}
	own := &packagesv1alpha1.Package{ObjectMeta: object("own")}
	own.SetConditions(metav1.Time{}, v1.Condition{
		Type: v1.TypeReady, Status: corev1.ConditionTrue, Reason: packagesv1alpha1.ReasonAvailable,
	})
	r := Reader{
		Frontend: firstgen.Frontend(),
		Client:   fake.NewClientBuilder().WithScheme(scheme).WithObjects(in, waits, record, own).Build(),
		Code:     func(reason string) (errcode.Code, bool) { return errcode.Code{Name: reason}, false },
	}
	f := Facts{}
	if err := r.readFirstGeneration(t.Context(), &f); err != nil {
		t.Fatal(err)
	}
	want := []Package{
		{Kind: "ClusterPackageInstall", Namespace: "team", Name: "failed", Reason: "NoProvider", Message: "why", Describe: "kubectl describe --namespace team clusterpackageinstalls.packages.crossplane.io failed"},
		{Kind: "PackageInstall", Namespace: "team", Name: "waits", Reason: "Creating", Message: "why", Waiting: true},
		{Kind: "Package", Namespace: "team", Name: "own", Ready: true, Reason: "Available"},
	}
	if !slices.Equal(f.FirstGeneration, want) {
		t.Errorf("the facts are %+v, want %+v", f.FirstGeneration, want)
	}
}

// A package that waits for its activation has not failed, and a paused one is recorded unless it is being deleted.
func TestPackageOf(t *testing.T) {
	r := Reader{Code: func(reason string) (errcode.Code, bool) { return errcode.Code{Name: reason}, false }}
	paused := metav1.ObjectMeta{Name: "boats", Annotations: map[string]string{v1.AnnotationPaused: "true"}}
	p := &v1.Provider{ObjectMeta: paused}
	p.SetConditions(metav1.Time{}, v1.Condition{
		Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: v1.ReasonInactive, Message: "why",
	})
	if got := r.packageOf(p, "resume"); !got.Waiting || got.Resume != "resume" {
		t.Errorf("the facts are %+v", got)
	}
	p.SetConditions(metav1.Time{}, v1.Condition{
		Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: runtime.ReasonStarting, Message: "why",
	})
	if got := r.packageOf(p, "resume"); !got.Waiting {
		t.Errorf("a runtime that starts has failed: %+v", got)
	}
	p.DeletionTimestamp = &metav1.Time{}
	if got := r.packageOf(p, "resume"); got.Resume != "" {
		t.Errorf("the facts of a package that is being deleted are %+v", got)
	}
}

// The fence of runtimes is needed unless the manager has announced that it runs none; managers of former versions
// announce nothing.
func TestReadFence(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := admissionv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for announced, want := range map[string]bool{
		"": false, "None": true, "Process": false, "Provider=None;Function=None": true,
		"Provider/hello=Deployment;Function=None;Provider=None": false,
	} {
		lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}}
		if announced != "" {
			lock.Annotations = map[string]string{runtime.AnnotationChoice: announced}
		}
		var f Facts
		r := Reader{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(lock).Build()}
		if err := r.readFence(t.Context(), &f); err != nil || f.WithoutRuntimes != want || f.Fenced {
			t.Errorf("%q: without runtimes is %t, want %t; %v", announced, f.WithoutRuntimes, want, err)
		}
	}
}

// Deployments that a manager made are former runtimes when the announced choice does not run them as Deployments, and
// those of others never are.
func TestReadFormerRuntimes(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	deployment := func(name, kind, revisionKind, writtenBy string) *appsv1.Deployment {
		of := plan.Owner{Kind: kind, Name: "hello"}
		if kind == revisionKind {
			of.Namespace = "system"
		}
		objects, err := manifests.Build(manifests.Input{
			Owner:     plan.Requester{Package: of, Revision: plan.Owner{Kind: revisionKind, Name: name}},
			Namespace: "system", Image: "registry.test/hello@sha256:1",
		})
		if err != nil {
			t.Fatal(err)
		}
		d := objects.Deployment
		d.Name, d.Annotations = name, map[string]string{writtenBy: "sha256:1"}
		return d
	}
	const xpkg, other = plan.ContentDigestAnnotation, "runner.test/digest"
	for announced, want := range map[string][]string{
		"": nil, "Deployment": nil, "External": {"provider", "greet", "own"}, "None": {"provider", "greet", "own"},
		"Provider=External;Function=Deployment":                          {"provider", "own"},
		"Provider/hello=Process;Provider=Deployment;Function=Deployment": {"provider"},
	} {
		lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}}
		if announced != "" {
			lock.Annotations = map[string]string{runtime.AnnotationChoice: announced}
		}
		r := Reader{Frontend: firstgen.Frontend(), Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(lock,
			deployment("provider", "Provider", "ProviderRevision", xpkg),
			deployment("greet", "Function", "FunctionRevision", xpkg),
			deployment("own", "Package", "Package", xpkg), deployment("runner", "Provider", "ProviderRevision", other),
		).Build()}
		var f Facts
		if err := r.readFormerRuntimes(t.Context(), &f); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, former := range f.FormerRuntimes {
			got = append(got, former.Deployment)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: the former runtimes are %v, want %v", announced, got, want)
		}
	}
}

// XRDs are facts of a cluster with a core. Their roles are complete, missing, not to be granted by the manager, or
// without an effect on core.
func TestReadXRDs(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err == nil {
		err = errors.Join(admissionv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme))
	}
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, name := range []string{"complete", "missing", "weaker", "ungranted", "inert"} {
		xrd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
			"metadata": map[string]any{"name": name + ".example.org"},
			"spec":     map[string]any{"group": "example.org", "names": map[string]any{"plural": name}},
		}}
		objects = append(objects, xrd)
		roles := rbac.DeriveComposite(rbac.Composite{Name: xrd.GetName(), Group: "example.org", Plural: name})
		switch name {
		case "missing", "ungranted":
			roles = roles[1:]
		case "weaker":
			roles[0].Rules = nil
		}
		for i := range roles {
			objects = append(objects, &roles[i])
		}
	}
	const manager, core = "system:serviceaccount:crossplane-system:xpkg",
		"system:serviceaccount:crossplane-system:crossplane"
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review := o.(*authorizationv1.SubjectAccessReview)
			resource := review.Spec.ResourceAttributes.Resource
			review.Status.Allowed = review.Spec.User == manager && resource != "ungranted" ||
				review.Spec.User == core && resource != "inert"
			return nil
		},
	}).Build()
	r := Reader{Client: cluster, Namespace: "crossplane-system"}
	for name, f := range map[string]Facts{
		"no core": {}, "a core without replicas": {Cores: []crossplane.Core{{}}},
	} {
		if err := r.readXRDs(t.Context(), &f); err != nil || len(f.XRDs) > 0 {
			t.Errorf("%s: %+v and %v", name, f.XRDs, err)
		}
	}
	f := Facts{Cores: []crossplane.Core{{Runs: true, Account: types.NamespacedName{
		Namespace: "crossplane-system", Name: "crossplane",
	}}}}
	if err := r.readXRDs(t.Context(), &f); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, xrd := range f.XRDs {
		got[xrd.Name] = fmt.Sprint(xrd.WithoutRoles, len(xrd.Ungranted) > 0, xrd.Denied)
	}
	want := map[string]string{
		"complete.example.org": "false false false", "missing.example.org": "true false false",
		"weaker.example.org":    "true false false",
		"ungranted.example.org": "true true false", "inert.example.org": "false false true",
	}
	if !maps.Equal(got, want) {
		t.Errorf("the facts are %v, want %v", got, want)
	}
}
