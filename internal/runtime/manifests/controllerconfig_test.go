package manifests

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// The example of the packages guide, "spec.controllerConfigRef".
func TestControllerConfigOfTheGuide(t *testing.T) {
	role := map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"}
	got := FromControllerConfig(&v1alpha1.ControllerConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "aws-config", Annotations: role},
		Spec:       v1alpha1.ControllerConfigSpec{PodSecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(2000))}},
	})
	want := v1beta1.DeploymentRuntimeConfigSpec{
		DeploymentTemplate: &v1beta1.DeploymentTemplate{
			Spec: &appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(2000))},
				Containers:      []corev1.Container{{Name: Container}},
			}}}},
		ServiceAccountTemplate: &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Annotations: role}},
	}
	if diff := cmp.Diff(want, got.Spec, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// Each field of a ControllerConfig, set alone, changes the objects of a provider.
func TestEveryControllerConfigFieldChangesObjects(t *testing.T) {
	every := &v1alpha1.ControllerConfig{}
	read(t, "controllerconfig.yaml", every)
	none := build(t, provider())
	fields := reflect.TypeFor[v1alpha1.ControllerConfigSpec]()
	for i := range fields.NumField() {
		t.Run(fields.Field(i).Name, func(t *testing.T) {
			value := reflect.ValueOf(every.Spec).Field(i)
			if value.IsZero() {
				t.Fatal("testdata/controllerconfig.yaml does not set the field")
			}
			one := &v1alpha1.ControllerConfig{}
			reflect.ValueOf(&one.Spec).Elem().Field(i).Set(value)
			in := provider()
			in.Config = FromControllerConfig(one)
			if cmp.Equal(none, build(t, in)) {
				t.Error("the field makes no difference")
			}
		})
	}
}
