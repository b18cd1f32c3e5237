package controller_test

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// constrained returns a Provider with a definition, for some versions of Crossplane.
func constrained(name, constraint string) string {
	return meta("Provider", name, "spec:\n  crossplane: {version: \""+constraint+"\"}\n") +
		crd(name+".test", "Thing", "one")
}

// No object of a package that does not support the version of Crossplane is written, and nothing is
// retried, unless the package ignores the constraint.
//
// hardening: E6
func TestCrossplaneConstraint(t *testing.T) {
	for name, c := range map[string]struct {
		configured string
		deployment *appsv1.Deployment
		running    string
	}{
		"Configured": {configured: "v1.14.0", running: "v1.14.0"},
		"Label":      {deployment: crossplane("xpkg-test-label", "1.15.0", "other/image:v9.9.9"), running: "1.15.0"},
		"Image": {deployment: crossplane(
			"xpkg-test-image", "", "xpkg.crossplane.io/crossplane/crossplane:v1.16.0",
		), running: "v1.16.0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.options.CrossplaneVersion = c.configured
			if c.deployment != nil {
				s.options.Namespace = c.deployment.Namespace
				deploy(t, s, c.deployment)
			}
			s.start(t)
			checkConstraint(t, s, c.running)
		})
	}
}

func checkConstraint(t *testing.T, s *testEnv, running string) {
	t.Helper()
	r := newRegistry(t)
	fits, _ := r.push(t, "acme/fits:v1", constrained("fits", ">=v1.0.0"))
	unfit, _ := r.push(t, "acme/unfit:v1", constrained("unfit", ">=v2.0.0"))
	good, bad := env.NewProvider("core-fits", fits), env.NewProvider("core-unfit", unfit)
	s.CreateTemporary(t, good)
	s.CreateTemporary(t, bad)
	untilSettled(t, s, good)
	s.WaitCondition(t, bad, v1.TypeHealthy, corev1.ConditionFalse, running)
	s.WaitCondition(t, bad, v1.TypeStalled, corev1.ConditionTrue, ">=v2.0.0")
	rev := s.Revisions(t, bad)[0]
	before := rev.GetResourceVersion()
	// Another package goes through all controllers meanwhile.
	other := newConfiguration("core-other", pushed(t, r, "other", meta("Configuration", "other", "")))
	s.CreateTemporary(t, other)
	untilSettled(t, s, other)
	if rev := s.Revisions(t, bad)[0]; rev.GetResourceVersion() != before {
		t.Error("a revision that does not fit was written again")
	}
	if writes := s.audit.Writes("things.unfit.test"); len(writes) > 0 {
		t.Errorf("of a package that does not fit was written: %v", writes)
	}
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Name: "things.unfit.test"}, newCRD(),
	); !apierrors.IsNotFound(err) {
		t.Errorf("an object of a package that does not fit is there (%v)", err)
	}
	env.Update(t, s.Env, bad, func(p *v1.Provider) { p.Spec.IgnoreCrossplaneConstraints = true })
	untilSettled(t, s, bad)
	for _, p := range []v1.Package{good, bad, other} {
		remove(t, s, p)
	}
}

// Without Crossplane, every package is compatible.
func TestNoCrossplane(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	p := env.NewProvider("core-absent", pushed(t, r, "absent", constrained("absent", ">=v99.0.0")))
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
}

func crossplane(namespace, label, image string) *appsv1.Deployment {
	labels := map[string]string{"app": "crossplane"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crossplane"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "crossplane", Image: image}}},
			},
		},
	}
	if label != "" {
		d.Labels = map[string]string{"app.kubernetes.io/version": label}
	}
	return d
}

func deploy(t *testing.T, s *testEnv, d *appsv1.Deployment) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.Namespace}}
	for _, o := range []client.Object{namespace, d} {
		if err := s.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Client.Delete(context.Background(), o) })
	}
}

// A Configuration is healthy without Crossplane, and its Ready condition states that its XRDs are not
// established. It notices when they are.
func TestXRDsThatNothingComposesAreReported(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	ref, _ := r.push(t, "acme/composed:v1", configuration("composed", "composed.test", "one"))
	p := newConfiguration("composed", ref)
	s.CreateTemporary(t, p)
	s.WaitHealthy(t, p)
	ready := p.GetCondition(v1.TypeReady)
	if ready.Status != corev1.ConditionTrue || ready.Reason != v1.ReasonNotComposed ||
		!strings.Contains(ready.Message, "1 XRD is not established: ") {
		t.Errorf("Ready is %+v", ready)
	}
	// Crossplane establishes an XRD with a CRD of the same name.
	composite := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(
		[]byte(strings.TrimPrefix(crd("composed.test", "XThing", "x"), "---\n")), composite,
	); err != nil {
		t.Fatal(err)
	}
	s.CreateTemporary(t, composite)
	s.WaitPackage(t, p, "is composed", func() bool {
		c := p.GetCondition(v1.TypeReady)
		return c.Status == corev1.ConditionTrue && c.Reason == v1.ReasonHealthy && c.Message == ""
	})
}
