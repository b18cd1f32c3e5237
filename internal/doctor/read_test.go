package doctor

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
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
	own.SetConditions(metav1.Time{}, v1.Condition{Type: v1.TypeReady, Status: corev1.ConditionTrue, Reason: packagesv1alpha1.ReasonAvailable})
	r := Reader{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(in, waits, record, own).Build(),
		Code:   func(reason string) (errcode.Code, bool) { return errcode.Code{Name: reason}, false },
	}
	f := Facts{}
	if err := r.readFirstGeneration(t.Context(), &f); err != nil {
		t.Fatal(err)
	}
	want := []Package{
		{Kind: "ClusterPackageInstall", Namespace: "team", Name: "failed", Reason: "NoProvider", Message: "why", Undescribed: true},
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
	p.SetConditions(metav1.Time{}, v1.Condition{Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: v1.ReasonInactive, Message: "why"})
	if got := r.packageOf(p); !got.Waiting || !got.Paused {
		t.Errorf("the facts are %+v", got)
	}
	p.SetConditions(metav1.Time{}, v1.Condition{Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: runtime.ReasonStarting, Message: "why"})
	if got := r.packageOf(p); !got.Waiting {
		t.Errorf("a runtime that starts has failed: %+v", got)
	}
	p.DeletionTimestamp = &metav1.Time{}
	if got := r.packageOf(p); got.Paused {
		t.Errorf("the facts of a package that is being deleted are %+v", got)
	}
}

// The fence of runtimes is needed unless the manager has announced that it runs none; managers of former versions announce nothing.
func TestReadFence(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := admissionv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for announced, want := range map[string]bool{"": false, "None": true, "Process": false, "Provider=None;Function=None": true, "Provider/hello=Deployment;Function=None;Provider=None": false} {
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

// Deployments that a manager made are former runtimes when the announced choice does not run them as Deployments, and those of others
// never are.
func TestReadFormerRuntimes(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	deployment := func(name, kind, revisionKind, writtenBy string) *appsv1.Deployment {
		objects, err := manifests.Build(manifests.Input{
			Owner:     plan.Requester{Package: plan.Owner{Kind: kind, Name: "hello"}, Revision: plan.Owner{Kind: revisionKind, Name: name}},
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
		"Provider=External;Function=Deployment": {"provider", "own"}, "Provider/hello=Process;Provider=Deployment;Function=Deployment": {"provider"},
	} {
		lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}}
		if announced != "" {
			lock.Annotations = map[string]string{runtime.AnnotationChoice: announced}
		}
		r := Reader{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(lock,
			deployment("provider", "Provider", "ProviderRevision", xpkg), deployment("greet", "Function", "FunctionRevision", xpkg),
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
