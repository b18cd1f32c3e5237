package upgrade_test

import (
	"context"
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
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const patience = 90 * time.Second

// stream is a version of the provider's package. The specification is that of its
// metadata.
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

// push publishes a version whose program runs in a mode.
func (s *stand) push(version, mode, spec string) string {
	s.Helper()
	return publish.Program(s, s.registry, "upgrade/provider", version, stream(version, spec), s.executable, mode, version).String()
}

// configure makes every program hold the same port of this machine.
func (s *stand) configure() {
	s.Helper()
	config := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "upgrade"}}
	config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}, Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: manifests.Container, Env: []corev1.EnvVar{{Name: "HOLD", Value: s.witness.hold}, {Name: "TELL", Value: s.witness.tell}},
		}}},
	}}}
	s.create(config)
	s.Cleanup(func() {
		if err := s.client.Delete(context.Background(), config); err != nil {
			s.Error(err)
		}
	})
}

func (s *stand) create(o client.Object) {
	s.Helper()
	if err := s.client.Create(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

// provider is a package whose program is configured as all of them are.
func provider(name, ref string) *v1.Provider {
	return &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ProviderSpec{
		PackageSpec:        v1.PackageSpec{Package: ref},
		PackageRuntimeSpec: v1.PackageRuntimeSpec{RuntimeConfigRef: &v1.RuntimeConfigReference{Name: "upgrade"}},
	}}
}

// upgrade asks for a version.
func (s *stand) upgrade(p *v1.Provider, ref string) {
	s.Helper()
	wait.Until(s.T, patience, "the package is changed", func() (string, bool) {
		if err := s.client.Get(s.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		p.Spec.Package = ref
		err := s.client.Update(s.Context(), p)
		return fmt.Sprint(err), err == nil
	})
}

// untilHealthy waits until the version that is asked for runs.
func (s *stand) untilHealthy(p *v1.Provider) {
	s.Helper()
	s.until(p, "is healthy with "+p.Spec.Package, func() bool {
		ready := p.GetCondition(v1.TypeReady)
		return ready.Status == corev1.ConditionTrue && ready.ObservedGeneration == p.Generation && p.Status.CurrentIdentifier == p.Spec.Package
	})
}

// untilBack waits until the version before is back and runs, and says why the new one
// is not wanted: both reasons are told.
func (s *stand) untilBack(p *v1.Provider, why string) {
	s.Helper()
	s.until(p, "is back from "+p.Spec.Package, func() bool {
		healthy, b := p.GetCondition(v1.TypeHealthy), p.Status.Rollback
		return healthy.Reason == v1.ReasonRolledBack && healthy.ObservedGeneration == p.Generation && b != nil && b.Generation == p.Generation &&
			strings.Contains(healthy.Message, why) && s.runs(b.To)
	})
}

// untilForbids waits until the API server asks the webhook of a version: through the
// Service of the package, and the endpoints that are this machine.
func (s *stand) untilForbids(version string) {
	s.Helper()
	if s.address == "" {
		s.Log("this machine has no address that endpoints may have: its webhooks are not asked")
		return
	}
	wait.Until(s.T, patience, version+" is asked before a thing is made", func() (string, bool) {
		t := newThing("forbidden")
		err := s.client.Create(s.Context(), t, client.DryRunAll)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), version+" forbids it")
	})
}

// runs reports whether the program of a revision runs, and counts as healthy.
func (s *stand) runs(revision string) bool {
	rev := &v1.ProviderRevision{}
	if err := s.client.Get(s.Context(), client.ObjectKey{Name: revision}, rev); err != nil {
		s.Fatal(err)
	}
	status, _ := s.supervisor.Status(revision)
	return status.Running && rev.Spec.DesiredState == v1.RevisionActive && rev.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue
}

func (s *stand) until(p *v1.Provider, what string, holds func() bool) {
	s.Helper()
	wait.Until(s.T, patience, p.Name+" "+what, func() (string, bool) {
		if err := s.client.Get(s.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", p.Status), holds()
	})
}

// Whatever the next version is like: each upgrade ends where it should, by itself,
// while resources are written all the time and the authority of all certificates is
// replaced. No write is refused or lost, no call of a webhook fails, and two versions
// never run at once.
func TestUpgradesUnderLoad(t *testing.T) {
	s := newStand(t)
	s.configure()
	const controller = "spec:\n  controller:\n    image: %s/upgrade/absent:v4\n"
	const escalation = "spec:\n  controller:\n    permissionRequests:\n    - {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [escalate]}\n"
	p := provider("upgrade", s.push("v1", "serve", ""))
	s.create(p)
	s.untilHealthy(p)
	rotation, stopRotation := startRotation(s)
	load, stop := startLoad(s)
	load.untilSeen("v1")

	steps := []struct{ version, mode, spec, why, by string }{
		{"v2", "serve", "", "", "v2"},
		{"v3", "crash", "", "exit code 7", "v2"},
		{"v4", "serve", fmt.Sprintf(controller, s.registry), "upgrade/absent", "v2"},
		{"v5", "serve", escalation, "PermissionDenied", "v2"},
		{"v6", "serve", "", "", "v6"},
	}
	for _, step := range steps {
		began := time.Now()
		s.upgrade(p, s.push(step.version, step.mode, step.spec))
		if step.why == "" {
			s.untilHealthy(p)
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
	if got := s.witness.overlaps(); len(got) > 0 {
		t.Errorf("these versions found another one alive: %v", got)
	}
	t.Logf("%d writes of %d things", load.writes, things)

	// Nothing is left of a package that goes.
	var revisions v1.ProviderRevisionList
	if err := s.client.List(t.Context(), &revisions); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, rev := range revisions.Items {
		wait.Until(t, patience, "the program of "+rev.Name+" has ended", func() (string, bool) {
			status, known := s.supervisor.Status(rev.Name)
			return fmt.Sprintf("%+v", status), !known
		})
	}
}
