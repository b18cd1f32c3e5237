package upgrade_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// stream returns the package.yaml of a version of the provider. The spec is the spec of its metadata.
func stream(version, spec string) []byte {
	return []byte(fmt.Sprintf(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: upgrade
%s---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.upgrade.test
spec:
  group: upgrade.test
  scope: Cluster
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        description: %s
        properties:
          spec: {type: object, properties: {number: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: upgrade
webhooks:
- name: things.upgrade.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: any, namespace: any, path: /validate}}
  rules:
  - {apiGroups: [upgrade.test], apiVersions: [v1], resources: [things], operations: [CREATE]}
`, spec, version))
}

// push publishes a version whose runtime has the given mode.
func (s *suite) push(version, mode, spec string) string {
	s.Helper()
	return publish.Program(s, s.Registry, "upgrade/provider", version, stream(version, spec), s.executable, mode, version).
		String()
}

// configure makes all runtimes listen on the same address.
func (s *suite) configure() {
	s.Helper()
	config := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "upgrade"}}
	config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{
		Spec: &appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: manifests.Container, Env: []corev1.EnvVar{{Name: "HOLD_ADDRESS", Value: s.overlaps.hold}, {
					Name: "REPORT_URL", Value: s.overlaps.report,
				}},
			}}},
		}}}
	s.Create(s, config)
	s.Cleanup(func() { s.Delete(s, config) })
}

// provider returns a package with the runtime configuration of the tests.
func provider(name, ref string) *v1.Provider {
	return &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ProviderSpec{
		PackageSpec:        v1.PackageSpec{Package: ref},
		PackageRuntimeSpec: v1.PackageRuntimeSpec{RuntimeConfigRef: &v1.RuntimeConfigReference{Name: "upgrade"}},
	}}
}

// upgrade requests a version.
func (s *suite) upgrade(p *v1.Provider, ref string) {
	s.Helper()
	env.Update(s, s.Env, p, func(p *v1.Provider) { p.Spec.Package = ref })
}

// untilBack waits until the package was rolled back to the former version, which runs, and the
// condition contains the reason.
func (s *suite) untilBack(p *v1.Provider, why string) {
	s.Helper()
	s.WaitPackage(s, p, "is back from "+p.Spec.Package, func() bool {
		healthy, b := p.GetCondition(v1.TypeHealthy), p.Status.Rollback
		return healthy.Reason == v1.ReasonRolledBack && healthy.ObservedGeneration == p.Generation && b != nil &&
			b.Generation == p.Generation &&
			strings.Contains(healthy.Message, why) && s.runs(b.To)
	})
}

// untilForbids waits until the API server calls the webhook of a version through the Service and the
// endpoints of the package.
func (s *suite) untilForbids(version string) {
	s.Helper()
	if s.address == "" {
		s.Log("this machine has no address that endpoints may have: its webhooks are not called")
		return
	}
	wait.Until(s, env.Limit, version+" is asked before a thing is made", func() (string, bool) {
		t := newThing("forbidden")
		err := s.Client.Create(s.Context(), t, client.DryRunAll)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), version+" forbids it")
	})
}

// runs reports whether the runtime of a revision runs, and the revision is active and ready.
func (s *suite) runs(revision string) bool {
	rev := &v1.ProviderRevision{}
	if err := s.Client.Get(s.Context(), client.ObjectKey{Name: revision}, rev); err != nil {
		s.Fatal(err)
	}
	status, _ := s.supervisor.Status(revision)
	return status.Running && rev.Spec.DesiredState == v1.RevisionActive &&
		rev.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue
}

// Every upgrade ends with a working version without help: the new one, or the former one if the new
// one does not work. Custom resources are written, and the CA is rotated, all the time. No write is
// rejected or lost, no webhook call fails, and two versions never run at once.
func TestUpgradesUnderLoad(t *testing.T) {
	lane.Full(t, "test/upgrade.TestFunctionAnswersThroughUpgrades", "test/upgrade.TestKilledRuntimeIsRestarted")
	s := newSuite(t)
	s.configure()
	const controller = "spec:\n  controller:\n    image: %s/upgrade/absent:v4\n"
	const escalation = "spec:\n  controller:\n    permissionRequests:\n    - {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [escalate]}\n"
	p := provider("upgrade", s.push("v1", "serve", ""))
	s.Create(s, p)
	s.WaitReady(s, p)
	rotation, stopRotation := startRotation(s)
	load, stop := startLoad(s)
	load.untilSeen("v1")

	steps := []struct{ version, mode, spec, why, by string }{
		{"v2", "serve", "", "", "v2"},
		{"v3", "crash", "", "exit code 7", "v2"},
		{"v4", "serve", fmt.Sprintf(controller, s.Registry), "upgrade/absent", "v2"},
		{"v5", "serve", escalation, "PermissionDenied", "v2"},
		{"v6", "serve", "", "", "v6"},
	}
	for _, step := range steps {
		began := time.Now()
		s.upgrade(p, s.push(step.version, step.mode, step.spec))
		if step.why == "" {
			s.WaitReady(s, p)
		} else {
			s.untilBack(p, step.why)
		}
		load.untilSeen(step.by)
		s.untilForbids(step.by)
		t.Logf("%s: %s works again after %s", step.version, step.by, time.Since(began).Round(100*time.Millisecond))
	}
	stop()
	load.untilSeen("v6")
	stopRotation()
	rotation.check()
	if len(load.failed) > 0 {
		t.Errorf("%d of %d writes were refused, the first: %v", len(load.failed), load.writes, load.failed[0])
	}
	if got := s.overlaps.recorded(); len(got) > 0 {
		t.Errorf("these versions started while another one was running: %v", got)
	}
	t.Logf("%d writes of %d things", load.writes, things)

	// The runtimes of a deleted package end.
	var revisions v1.ProviderRevisionList
	if err := s.Client.List(t.Context(), &revisions); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, rev := range revisions.Items {
		wait.Until(t, env.Limit, "the program of "+rev.Name+" has ended", func() (string, bool) {
			status, known := s.supervisor.Status(rev.Name)
			return fmt.Sprintf("%+v", status), !known
		})
	}
}
