package controller_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// A pod is ready for the instant between the start and the exit of its program. A
// revision is healthy only when its pod stays ready for the settle time.
func TestReadyPodsCountAfterTheSettleTime(t *testing.T) {
	s := newEnv(t)
	s.options.Runtimes, s.options.Settle = runtime.Everywhere(runtime.Deployment), 9*time.Minute
	s.StartKubelet(t, controller.DefaultNamespace)
	s.start(t)
	r := newRegistry(t)
	ref, _ := r.push(t, "settle/instant:v1", provider("instant", crd("instant.test", "Thing", "one")))
	p := env.NewProvider("instant", ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "is available when it has run for 540s without a restart")
	if p.Status.Activation.Healthy || p.Status.LastHealthyRevision != "" {
		t.Errorf("status %+v, want a revision that was not healthy", p.Status)
	}
	setPodStatus(t, s, activeOf(t, s, p), func(p *corev1.Pod) corev1.PodStatus { return env.CrashingPod(p, 1) })
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "it exited with code 7")
	remove(t, s, p)
}

// A version that was healthy and enters a crash loop before the activation deadline is
// rolled back at once, and is not the last healthy revision.
//
// hardening: H7
func TestCrashLoopAfterHealthyIsRolledBack(t *testing.T) {
	s := newEnv(t)
	s.options.Runtimes, s.options.Settle = runtime.Everywhere(runtime.Deployment), time.Second
	s.options.ActivationDeadline = time.Hour
	k := s.StartKubelet(t, controller.DefaultNamespace)
	s.start(t)
	r := newRegistry(t)
	one, oneDigest := r.push(t, "settle/crash:v1", provider("crash", crd("crash.test", "Thing", "one")))
	two, _ := r.push(t, "settle/crash:v2", provider("crash", crd("crash.test", "Thing", "two")))
	p := env.NewProvider("crash", one)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	good := p.Status.CurrentRevision
	upgradeTo(t, s, p, two)
	bad := p.Status.CurrentRevision

	setPodStatus(t, s, bad, func(p *corev1.Pod) corev1.PodStatus { return env.CrashingPod(p, 1) })
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "code 7")
	if p.Status.Rollback != nil {
		t.Errorf("rolled back after one crash: %+v", p.Status.Rollback)
	}
	setPodStatus(t, s, bad, func(p *corev1.Pod) corev1.PodStatus { return env.CrashingPod(p, 3) })
	untilRolledBack(t, s, p)
	if b := p.Status.Rollback; b.From != bad || b.To != good || !strings.Contains(b.Message, "code 7") {
		t.Errorf("rolled back: %+v", b)
	}
	untilRuns(t, s, p, oneDigest.String())
	if p.Status.LastHealthyRevision != good {
		t.Errorf("last healthy revision %s, want %s", p.Status.LastHealthyRevision, good)
	}
	if both := k.Overlapped("crash"); both != "" {
		t.Errorf("two versions ran at once: %s", both)
	}
	remove(t, s, p)
}

// The pod of the former version of a Function runs until the new version has held for its
// settle time, which a runtime configuration may set.
func TestFormerFunctionRunsUntilTheNewOneIsHealthy(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	one, _ := r.push(t, "settle/function:v1", meta("Function", "held", ""))
	two, _ := r.push(t, "settle/function:v2", meta("Function", "held", "spec: {capabilities: [composition, operation]}\n"))
	config := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
	config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{
		MinReadySeconds: 540, Selector: &metav1.LabelSelector{},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: manifests.Container}}}},
	}}
	s.CreateTemporary(t, config)
	f := &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "held"}, Spec: v1.FunctionSpec{PackageSpec: v1.PackageSpec{
		Package: one,
	}}}
	s.CreateTemporary(t, f)
	untilSettled(t, s, f)
	former := podOf(t, s, f.Status.CurrentRevision)
	env.Update(t, s.Env, f, func(f *v1.Function) {
		f.Spec.Package, f.Spec.RuntimeConfigRef = two, &v1.RuntimeConfigReference{Name: "slow"}
	})
	s.WaitCondition(t, f, v1.TypeHealthy, corev1.ConditionFalse, "is available when it has run for 540s without a restart")
	setPodStatus(t, s, f.Status.CurrentRevision, func(p *corev1.Pod) corev1.PodStatus { return env.CrashingPod(p, 2) })
	s.WaitPackage(t, f, "is rolled back", func() bool {
		return f.Status.Rollback != nil && strings.Contains(f.Status.Rollback.Message, "code 7") &&
			f.GetCondition(v1.TypeHealthy).Reason == v1.ReasonRolledBack
	})
	still := &corev1.Pod{}
	err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: former.Name}, still)
	if err != nil || still.UID != former.UID || still.DeletionTimestamp != nil {
		t.Errorf("the pod of the former version is deleted or replaced (%v)", err)
	}
	remove(t, s, f)
}
