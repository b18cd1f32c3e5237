package crossplane

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func coreWith(start, initial []string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: DeploymentName},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "sidecar"}, {Name: "crossplane", Args: start}},
			InitContainers: []corev1.Container{{Name: "wait"}, {Name: "crossplane-init", Args: initial}},
		}}},
	}
}

// Core leaves the packages to the manager with its other settings unchanged, and gets back exactly what it had.
func TestCoreLeavesAndTakesPackages(t *testing.T) {
	for name, tc := range map[string]struct{ start, initial, wantStart, wantInit []string }{
		"defaults": {
			[]string{"core", "start"}, []string{"core", "init"},
			[]string{"core", "start", "--package-runtime=External"}, []string{"core", "init"},
		},
		"other flags": {
			[]string{"core", "start", "--package-runtime", "Deployment", "--debug"},
			[]string{"core", "init", "--provider", "a", "--activation", "*", "--function=b"},
			[]string{"core", "start", "--debug", "--package-runtime=External"}, []string{"core", "init", "--activation", "*"},
		},
		"runtime of one kind": {
			[]string{"core", "start", "--package-runtime=Provider=External;Function=Deployment"}, []string{"core", "init"},
			[]string{"core", "start", "--package-runtime=External"}, []string{"core", "init"},
		},
		"only packages": {
			[]string{"core", "start", "--package-runtime", "External"}, []string{"core", "init", "--configuration", "c"},
			[]string{"core", "start", "--package-runtime", "External"}, []string{"core", "init"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := coreWith(tc.start, tc.initial)
			before := d.DeepCopy()
			if !LeavePackages(d) {
				t.Error("unchanged")
			}
			got := settingsOf(d)
			if !slices.Equal(got.Start, tc.wantStart) || !slices.Equal(got.Init, tc.wantInit) {
				t.Errorf("core has %q and %q, want %q and %q", got.Start, got.Init, tc.wantStart, tc.wantInit)
			}
			if runsRuntimes(*d) {
				t.Error("core runs package runtimes")
			}
			if again := d.DeepCopy(); LeavePackages(again) || !equality.Semantic.DeepEqual(again, d) {
				t.Error("the second change is not without an effect")
			}
			if changed, err := TakePackages(d); err != nil || !changed || !equality.Semantic.DeepEqual(d.Spec, before.Spec) ||
				len(d.Annotations) != 0 {
				t.Errorf("%v: %+v, annotations %v, was %+v", err, settingsOf(d), d.Annotations, settingsOf(before))
			}
		})
	}
}

// Settings that were changed after the migration stay when core takes the packages again.
func TestCoreKeepsLaterSettings(t *testing.T) {
	d := coreWith([]string{"core", "start", "--package-runtime=Deployment"}, []string{"core", "init", "--provider", "a"})
	LeavePackages(d)
	c := startContainer(d)
	c.Args = append(c.Args, "--debug")
	if _, err := TakePackages(d); err != nil {
		t.Fatal(err)
	}
	got := settingsOf(d)
	if want := []string{"core", "start", "--debug", "--package-runtime=Deployment"}; !slices.Equal(got.Start, want) {
		t.Errorf("core has %q, want %q", got.Start, want)
	}
	if want := []string{"core", "init", "--provider", "a"}; !slices.Equal(got.Init, want) {
		t.Errorf("the initialization has %q, want %q", got.Init, want)
	}
}

// A core that was configured by its chart has no record.
func TestCoreTakesPackagesWithoutARecord(t *testing.T) {
	d := coreWith([]string{"core", "start", "--package-runtime=External"}, []string{"core", "init", "--provider", "a"})
	if changed, err := TakePackages(d); err != nil || !changed || !runsRuntimes(*d) ||
		!slices.Contains(initContainer(d).Args, "a") {
		t.Errorf("%v %v: %+v", changed, err, settingsOf(d))
	}
	if changed, err := TakePackages(d); err != nil || changed {
		t.Errorf("the second change: %v %v", changed, err)
	}
	d.Annotations = map[string]string{AnnotationFormerSettings: "{"}
	if _, err := TakePackages(d); err == nil {
		t.Error("a record that cannot be read was accepted")
	}
}

func TestRBACManagerStopsAndStarts(t *testing.T) {
	for name, tc := range map[string]struct{ replicas, want *int32 }{
		"default":  {nil, new(int32(1))},
		"replicas": {new(int32(3)), new(int32(3))},
		"none":     {new(int32(0)), new(int32(1))},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: RBACDeploymentName}, Spec: appsv1.DeploymentSpec{
				Replicas: tc.replicas,
			}}
			if changed := LeavePackages(d); changed != (name != "none") || runs(*d) {
				t.Errorf("changed %v, replicas %v", changed, d.Spec.Replicas)
			}
			if changed, err := TakePackages(d); !changed || err != nil || *d.Spec.Replicas != *tc.want {
				t.Errorf("changed %v, replicas %v, %v", changed, d.Spec.Replicas, err)
			}
			if changed, err := TakePackages(d); changed || err != nil {
				t.Errorf("the second change: %v %v", changed, err)
			}
		})
	}
}
