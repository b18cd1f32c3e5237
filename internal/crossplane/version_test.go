package crossplane

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const namespace = "crossplane-system"

func core(label string, images ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: DeploymentName}}
	if label != "" {
		d.Labels = map[string]string{versionLabel: label}
	}
	for _, image := range images {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Image: image})
	}
	return d
}

// hardening: E6
func TestVersion(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		there []client.Object
		want  string
	}{
		"none runs": {nil, ""},
		"a label":   {[]client.Object{core("v2.1.0", "crossplane/crossplane:v1.0.0")}, "v2.1.0"},
		"an image": {
			[]client.Object{core("", "example.com/proxy:v9", "xpkg.crossplane.io/crossplane/crossplane:v1.20.0")}, "v1.20.0",
		},
		"an image of a hub": {[]client.Object{core("", "crossplane/crossplane:v1.18.2")}, "v1.18.2"},
		"neither":           {[]client.Object{core("", "example.com/proxy:v9", "not a reference")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.there...).Build()
			got, err := Version(t.Context(), reader, namespace)
			if got != tc.want || err != nil {
				t.Errorf("got %q and %v, want %q", got, err, tc.want)
			}
		})
	}
	forbidden := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("forbidden")
		},
	}).Build()
	if _, err := Version(t.Context(), forbidden, namespace); !errors.Is(err, ErrVersion) {
		t.Errorf("got %v, want %s", err, ErrVersion.Name)
	}
}

func TestConstraintsAreCheckedAgainstTheVersionThatRuns(t *testing.T) {
	fits, err := (&Checker{Configured: "v1.14.0"}).Constraints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for constraint, want := range map[string]bool{
		"": true, ">=v1.14.0": true, ">=v1.15.0": false, "~v1.14": true, "no constraint": false,
	} {
		if fits(constraint) != want {
			t.Errorf("%q is accepted: %v", constraint, !want)
		}
	}
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	none := &Checker{Reader: fake.NewClientBuilder().WithScheme(scheme).Build(), Namespace: namespace, Now: time.Now}
	if fits, err := none.Constraints(t.Context()); fits != nil || err != nil {
		t.Errorf("without Crossplane: %v", err)
	}
}
