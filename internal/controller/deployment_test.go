package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// newDeploymentEnv returns an environment whose manager runs runtimes as Deployments.
func newDeploymentEnv(t *testing.T) (*testEnv, *env.Kubelet, *registry) {
	t.Helper()
	s := newEnv(t)
	s.options.Runtimes = runtime.Everywhere(runtime.Deployment)
	s.options.ActivationDeadline, s.options.Settle = 15*time.Second, time.Second
	k := s.StartKubelet(t, controller.DefaultNamespace)
	s.start(t)
	return s, k, newRegistry(t)
}

// A provider is healthy when its runtime is, and two of its versions never run at the same time: a
// good one, one whose program exits at once, and one whose image does not exist.
func TestProviderRunsAsADeployment(t *testing.T) {
	s, k, r := newDeploymentEnv(t)
	kind := func(text string) string { return crd("runtime.test", "Thing", text) }
	v1ref, one := r.push(t, "runtime/provider:v1", provider("runtime", kind("one")))
	v2ref, two := r.push(t, "runtime/provider:v2", provider("runtime", kind("two")))
	v3ref, bad := r.push(t, "runtime/provider:v3", provider("runtime", kind("three")))
	absent := "spec:\n  controller:\n    image: " + r.address + "/runtime/absent:v4\n"
	v4ref, _ := r.push(t, "runtime/provider:v4", meta("Provider", "runtime", absent)+kind("four"))
	k.Fail(bad.String(), true)

	p := env.NewProvider("runtime", v1ref)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	untilRuns(t, s, p, one.String())

	upgradeTo(t, s, p, v2ref)
	untilRuns(t, s, p, two.String())
	good := activeOf(t, s, p)

	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = v3ref })
	untilRolledBack(t, s, p)
	if b := p.Status.Rollback; b.To != good || !strings.Contains(b.Message, "code 7") {
		t.Errorf("rolled back: %+v", b)
	}
	untilRuns(t, s, p, two.String())
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "code 7")

	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = v4ref })
	s.WaitPackage(t, p, "is rolled back from the last version", func() bool {
		return p.Status.Rollback != nil && p.Status.Rollback.From == p.Status.CurrentRevision &&
			p.Status.CurrentIdentifier == v4ref && rolledBack(p)
	})
	if b := p.Status.Rollback; b.To != good || !strings.Contains(b.Message, "runtime/absent") {
		t.Errorf("rolled back: %+v", b)
	}
	untilRuns(t, s, p, two.String())
	if got := schemaDescription(t, s, "things.runtime.test"); got != "two" {
		t.Errorf("the CRD is of version %s", got)
	}
	if both := k.Overlapped("runtime"); both != "" {
		t.Errorf("two versions ran at once: %s", both)
	}
	remove(t, s, p)
	eventually(t, "all objects of the runtime are deleted", func() bool { return len(deployments(t, s, p)) == 0 })
}

// An install creates the objects of internal/runtime/manifests, whose golden files come
// from Crossplane. A revision that a user makes inactive has no runtime.
func TestInstallCreatesTheGoldenManifests(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	ref, digest := r.push(t, "runtime/shape:v1", provider("shape", crd("shape.test", "Thing", "one")))
	p := env.NewProvider("shape", ref)
	p.Spec.RevisionActivationPolicy = v1.ManualActivation
	p.Spec.PackagePullSecrets = []corev1.LocalObjectReference{{Name: "mine"}}
	s.CreateTemporary(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: controller.DefaultNamespace, Name: "mine"},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
	})
	s.CreateTemporary(t, p)
	eventually(t, "the revision is there", func() bool { return len(s.Revisions(t, p)) == 1 })
	rev := s.Revisions(t, p)[0]
	activate(t, s.Client, rev.GetName())
	untilSettled(t, s, p)

	api := v1.GroupVersion.String()
	want, err := manifests.Build(manifests.Input{
		Owner: plan.Requester{
			Revision: plan.Owner{APIVersion: api, Kind: v1.ProviderRevisionKind, Name: rev.GetName(), UID: rev.GetUID()},
			Package:  plan.Owner{APIVersion: api, Kind: v1.ProviderKind, Name: p.Name, UID: p.UID},
		},
		Namespace: controller.DefaultNamespace, Image: ref + "@" + digest.String(), PullSecrets: []string{"mine"},
		TLSServerSecret: "shape-tls-server", TLSClientSecret: "shape-tls-client", Settle: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	deployment, service, account := want.Deployment.DeepCopy(), want.Service.DeepCopy(), want.ServiceAccount.DeepCopy()
	for _, o := range []client.Object{deployment, service, account} {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
	}
	for name, equal := range map[string]bool{
		"spec of the Deployment": equality.Semantic.DeepDerivative(want.Deployment.Spec, deployment.Spec),
		"spec of the Service":    equality.Semantic.DeepDerivative(want.Service.Spec, service.Spec),
		"pull secrets of the ServiceAccount": equality.Semantic.DeepEqual(
			want.ServiceAccount.ImagePullSecrets, account.ImagePullSecrets,
		),
		"owners of the Deployment": manifests.EqualOwners(want.Deployment.OwnerReferences, deployment.OwnerReferences),
		"owners of the Service":    manifests.EqualOwners(want.Service.OwnerReferences, service.OwnerReferences),
	} {
		if !equal {
			t.Errorf("%s: differs from the manifest; the Deployment is %+v", name, deployment)
		}
	}

	change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"Inactive"}}`))
	if err := s.Client.Patch(t.Context(), rev, change); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the runtime of the inactive revision is deleted", func() bool { return len(deployments(t, s, p)) == 0 })
	remove(t, s, p)
}

// The old version of a function runs until the new one serves.
func TestFunctionRunsAsADeployment(t *testing.T) {
	s, k, r := newDeploymentEnv(t)
	v1ref, one := r.push(t, "runtime/function:v1", meta("Function", "fn", ""))
	v2ref, two := r.push(
		t, "runtime/function:v2", meta("Function", "fn", "spec: {capabilities: [composition, operation]}\n"),
	)
	f := &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "fn"}, Spec: v1.FunctionSpec{PackageSpec: v1.PackageSpec{
		Package: v1ref,
	}}}
	s.CreateTemporary(t, f)
	untilSettled(t, s, f)
	untilRuns(t, s, f, one.String())
	rev := &v1.FunctionRevision{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: activeOf(t, s, f)}, rev); err != nil {
		t.Fatal(err)
	}
	if rev.Status.Endpoint != "dns:///fn.crossplane-system:9443" {
		t.Errorf("endpoint %s", rev.Status.Endpoint)
	}
	env.Update(t, s.Env, f, func(f *v1.Function) { f.Spec.Package = v2ref })
	untilSettled(t, s, f)
	untilRuns(t, s, f, two.String())
	if k.Overlapped("fn") == "" {
		t.Error("the old version ended before the new one answered")
	}
	remove(t, s, f)
}

// A runtime configuration is waited for and applied when it changes, and an ImageConfig may name
// another one.
//
// hardening: E11
func TestRuntimeConfigs(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	ref, one := r.push(t, "runtime/configured:v1", provider("configured", crd("configured.test", "Thing", "one")))
	p := env.NewProvider("configured", ref)
	p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: "configured"}
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "RuntimeConfigNotFound")
	account := "of-configured"
	config := &v1beta1.DeploymentRuntimeConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "configured"},
		Spec: v1beta1.DeploymentRuntimeConfigSpec{
			ServiceAccountTemplate: &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Name: &account}},
		},
	}
	s.CreateTemporary(t, config)
	untilSettled(t, s, p)
	untilRuns(t, s, p, one.String())
	untilAccount := func(name string) {
		eventually(t, name+" exists", func() bool {
			return s.Client.Get(
				t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: name}, &corev1.ServiceAccount{},
			) == nil
		})
	}
	untilAccount(account)
	account = "of-configured-2"
	env.Update(t, s.Env, config, func(config *v1beta1.DeploymentRuntimeConfig) {
		config.Spec.ServiceAccountTemplate.Metadata.Name = &account
	})
	untilAccount(account)
	// A deleted object is created again.
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controller.DefaultNamespace, Name: account}}
	if err := s.Client.Delete(t.Context(), sa); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	untilAccount(account)
	remove(t, s, p)
}

// A package whose runtime failed, or runs, becomes healthy without it when the manager no longer runs a runtime for it:
// the condition of the former runtime is removed, and its workload is stopped while the manager still runs others of
// that kind.
func TestPackageIsHealthyWhenItsRuntimeIsNoLongerRun(t *testing.T) {
	s := newEnv(t)
	s.options.Runtimes = runtime.Everywhere(runtime.Deployment)
	s.options.ActivationDeadline, s.options.Settle = time.Hour, time.Second
	s.StartKubelet(t, controller.DefaultNamespace)
	stop := s.start(t)
	r := newRegistry(t)
	failed := env.NewProvider("unrun-failed", pushed(t, r, "unrun-failed",
		meta("Provider", "failed", "spec:\n  controller:\n    image: "+r.address+"/unrun/absent:v1\n")+
			crd("unrunfailed.test", "Thing", "one")))
	dropped := env.NewProvider(
		"unrun-dropped", pushed(t, r, "unrun-dropped", provider("dropped", crd("unrundropped.test", "Thing", "one"))),
	)
	kept := env.NewProvider(
		"unrun-kept", pushed(t, r, "unrun-kept", provider("kept", crd("unrunkept.test", "Thing", "one"))),
	)
	for _, p := range []*v1.Provider{failed, dropped, kept} {
		s.CreateTemporary(t, p)
	}
	untilSettled(t, s, dropped)
	untilSettled(t, s, kept)
	s.WaitCondition(t, failed, v1.TypeHealthy, corev1.ConditionFalse, "RepositoryNotFound")
	stop()

	choice, err := runtime.ParseChoice("Provider/unrun-failed=None;Provider/unrun-dropped=None", runtime.Deployment)
	if err != nil {
		t.Fatal(err)
	}
	s.options.Runtimes = choice
	s.start(t)
	untilSettled(t, s, failed)
	eventually(t, "the runtime is stopped", func() bool { return len(deployments(t, s, dropped)) == 0 })
	untilSettled(t, s, dropped)
	for _, p := range []*v1.Provider{failed, dropped} {
		for _, c := range []v1.ConditionType{v1.TypeRuntimeHealthy, v1.TypeRuntimeActive} {
			if got := s.Revisions(t, p)[0].GetCondition(c); got.Reason != "" {
				t.Errorf("the revision of %s has the condition of a runtime: %+v", p.Name, got)
			}
		}
	}
	if n := len(deployments(t, s, kept)); n != 1 {
		t.Errorf("%d Deployments of the package whose runtime is unchanged", n)
	}
}

// The health of a runtime that the manager ran is no report of the system that runs it from now on: the package is not
// healthy until that system reports, also with the reason that the manager uses.
func TestHealthOfTheFormerRuntimeIsNoReport(t *testing.T) {
	s := newEnv(t)
	s.options.Runtimes, s.options.Settle = runtime.Everywhere(runtime.Deployment), time.Second
	s.StartKubelet(t, controller.DefaultNamespace)
	stop := s.start(t)
	p := env.NewProvider(
		"handedover", pushed(t, newRegistry(t), "handedover", provider("handedover", crd("handedover.test", "Thing", "one"))),
	)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	stop()

	s.options.Runtimes = runtime.Everywhere(runtime.External)
	s.start(t)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionUnknown, "has not reported")
	rev := s.Revisions(t, p)[0]
	if c := rev.GetCondition(v1.TypeRuntimeHealthy); c.Status != corev1.ConditionUnknown {
		t.Errorf("the revision has the health of its former runtime: %+v", c)
	}
	eventually(t, "the health is reported", func() bool {
		rev = s.Revisions(t, p)[0]
		rev.SetConditions(metav1.Now(), v1.RuntimeHealthy())
		return s.Client.Status().Update(t.Context(), rev) == nil
	})
	untilSettled(t, s, p)
}

// The runtime of a package with external runtime has the reported health, and only
// a report on the current revision counts.
func TestExternalRuntimeHasTheReportedHealth(t *testing.T) {
	s := newEnv(t)
	s.options.Runtimes, s.options.MakeNamespace = runtime.Everywhere(runtime.External), true
	s.options.ActivationDeadline = 4 * time.Second
	s.start(t)
	r := newRegistry(t)
	ref, _ := r.push(t, "runtime/external:v1", provider("external", crd("external.test", "Thing", "one")))
	next, _ := r.push(t, "runtime/external:v2", provider("external", crd("external.test", "Thing", "two")))
	p := env.NewProvider("external", ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionUnknown, "another system runs the runtime")
	report := func(status corev1.ConditionStatus, message string) {
		t.Helper()
		eventually(t, "the report is written", func() bool {
			rev := &v1.ProviderRevision{}
			if err := s.Client.Get(t.Context(), client.ObjectKey{Name: activeOf(t, s, p)}, rev); err != nil {
				return false
			}
			said := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1.GroupVersion.String(), "kind": v1.ProviderRevisionKind,
				"metadata": map[string]any{"name": rev.Name},
				"status": map[string]any{"conditions": []any{map[string]any{
					"type": "RuntimeHealthy", "status": string(status), "reason": "Mine", "message": message,
					"observedGeneration": rev.Generation, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
				}}},
			}}
			err := s.Client.Status().Apply(
				t.Context(), client.ApplyConfigurationFromUnstructured(said), client.FieldOwner("my-runner"), client.ForceOwnership,
			)
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
	}
	report(corev1.ConditionTrue, "runs elsewhere")
	untilSettled(t, s, p)
	rev := &v1.ProviderRevision{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: activeOf(t, s, p)}, rev); err != nil {
		t.Fatal(err)
	}
	if c := rev.GetCondition(v1.TypeRuntimeHealthy); c.Reason != "Mine" || c.Message != "runs elsewhere" {
		t.Errorf("the report was overwritten: %+v", c)
	}
	report(corev1.ConditionFalse, "the machine burns")
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "the machine burns")
	report(corev1.ConditionTrue, "")
	untilSettled(t, s, p)

	// There is no report on the new version, so the package is rolled back. The
	// existing report concerns another revision.
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = next })
	untilRolledBack(t, s, p)
	if !strings.Contains(p.Status.Rollback.Message, "has not reported") {
		t.Errorf("rolled back: %+v", p.Status.Rollback)
	}
	remove(t, s, p)
}
