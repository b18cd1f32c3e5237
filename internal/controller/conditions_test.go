package controller_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// computed returns the status that kstatus, and thereby Flux and others, compute for an object.
func computed(t *testing.T, s *testEnv, kind, name string) (*status.Result, *unstructured.Unstructured) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(v1.GroupVersion.String())
	u.SetKind(kind)
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, u); err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(u)
	if err != nil {
		t.Fatal(err)
	}
	return result, u
}

// The conditions Ready, Reconciling and Stalled have the same meaning in kstatus as
// in xpkg, in every state of a package and of its revision.
//
// hardening: E1
func TestKstatus(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	dead := newRegistry(t)
	dead.setFault(answer(http.StatusServiceUnavailable))
	held := env.NewProvider("kstatus-held", pushed(t, r, "held", provider("held", crd("kstatus.test", "Held", "one"))))
	s.CreateTemporary(t, held)
	untilSettled(t, s, held)
	for name, c := range map[string]struct {
		ref      string
		prepare  func(*v1.Provider)
		want     status.Status
		revision status.Status
		reason   string
	}{
		"ready": {
			pushed(t, r, "ready", provider("ready", crd("kstatus.test", "Ready", "one"))), nil, status.CurrentStatus,
			status.CurrentStatus, "HealthyPackageRevision",
		},
		"down":      {dead.address + "/acme/down:v1", nil, status.InProgressStatus, "", "RegistryUnavailable"},
		"malformed": {pushed(t, r, "malformed", "kind: ["), nil, status.FailedStatus, "", "InvalidYAML"},
		"absent":    {r.address + "/acme/absent:v1", nil, status.FailedStatus, "", "RepositoryNotFound"},
		"manual": {pushed(t, r, "manual", provider("manual", crd("kstatus.test", "Manual", "one"))), func(p *v1.Provider) {
			p.Spec.RevisionActivationPolicy = v1.ManualActivation
		}, status.InProgressStatus, status.CurrentStatus, "InactivePackageRevision"},
		"contested": {
			pushed(t, r, "contested", provider("contested", crd("kstatus.test", "Held", "two"))), nil, status.FailedStatus,
			status.FailedStatus, "ForeignOwner",
		},
		"needy": {
			pushed(t, r, "needy", meta(
				"Provider", "needy", "spec:\n  dependsOn:\n  - provider: registry.example.com/acme/none\n    version: '>=v1'\n",
			)),
			nil, status.InProgressStatus, status.InProgressStatus, "DependencyMissing",
		},
		"kind": {pushed(t, r, "kind", meta("Function", "kind", "")), nil, status.FailedStatus, "", "WrongKind"},
	} {
		t.Run(name, func(t *testing.T) {
			p := env.NewProvider("kstatus-"+name, c.ref)
			if c.prepare != nil {
				c.prepare(p)
			}
			s.CreateTemporary(t, p)
			s.WaitPackage(t, p, "is "+c.reason, func() bool {
				ready := p.GetCondition(v1.TypeReady)
				return string(ready.Reason) == c.reason && ready.ObservedGeneration == p.Generation
			})
			checkStatus(t, s, v1.ProviderKind, p.Name, c.want)
			for _, rev := range s.Revisions(t, p) {
				wait.Until(t, limit, "the revision is "+c.revision.String(), func() (string, bool) {
					got, u := computed(t, s, "ProviderRevision", rev.GetName())
					observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
					return fmt.Sprintf("%s %v", got.Status, u.Object["status"]),
						got.Status == c.revision && observed == u.GetGeneration()
				})
				checkStatus(t, s, "ProviderRevision", rev.GetName(), c.revision)
			}
		})
	}
}

// A package that the manager still reads is in progress. For kstatus, an object without conditions and
// observedGeneration is ready.
func TestKstatusOfNewPackages(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	r.setFault(neverResponds)
	for _, kind := range v1.PackageKinds() {
		p := v1.NewPackage(kind)
		p.SetName("kstatus-new-" + strings.ToLower(kind))
		p.PackageSpec().Package = r.address + "/acme/new:v1"
		s.CreateTemporary(t, p)
		if got, u := computed(t, s, kind, p.GetName()); got.Status != status.InProgressStatus {
			t.Errorf("%s is %s for kstatus (%s): %v", p.GetName(), got.Status, got.Message, u.Object["status"])
		}
	}
}

// checkStatus checks the result of kstatus for an object, and that each of its
// conditions has an observed generation.
func checkStatus(t *testing.T, s *testEnv, kind, name string, want status.Status) {
	t.Helper()
	got, u := computed(t, s, kind, name)
	if got.Status != want {
		t.Errorf("%s %s is %s for kstatus (%s), want %s: %v", kind, name, got.Status, got.Message, want, u.Object["status"])
	}
	if observed, _, _ := unstructured.NestedInt64(
		u.Object, "status", "observedGeneration",
	); observed != u.GetGeneration() {
		t.Errorf("%s %s: status.observedGeneration is %d of %d", kind, name, observed, u.GetGeneration())
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if observed, _, _ := unstructured.NestedInt64(
			c.(map[string]any), "observedGeneration",
		); observed != u.GetGeneration() {
			t.Errorf("%s %s of generation %d: %v", kind, name, u.GetGeneration(), c)
		}
	}
}

// The health that the runtime of a package reports determines the health of the
// package.
func TestRuntimeHealth(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	p := env.NewProvider(
		"runtime-health", pushed(t, r, "runtime", provider("runtime", crd("runtimehealth.test", "Thing", "one"))),
	)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	report := func(c v1.Condition) {
		t.Helper()
		wait.Until(t, limit, "the runtime health is reported", func() (string, bool) {
			rev := s.Revisions(t, p)[0]
			rev.SetConditions(rev.GetCreationTimestamp(), c)
			err := s.Client.Status().Update(t.Context(), rev)
			return fmt.Sprint(err), err == nil
		})
	}
	report(v1.RuntimeUnhealthy("its pod does not start"))
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "its pod does not start")
	checkStatus(t, s, v1.ProviderKind, p.Name, status.InProgressStatus)
	report(v1.RuntimeHealthy())
	s.WaitHealthy(t, p)
	checkStatus(t, s, v1.ProviderKind, p.Name, status.CurrentStatus)
}

// An event is recorded once for each change, regardless of the number of reconciliations.
func TestEvents(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	good := env.NewProvider("events-good", pushed(t, r, "good", provider("good", crd("events.test", "Thing", "one"))))
	bad := env.NewProvider("events-bad", r.address+"/acme/absent:v1")
	s.CreateTemporary(t, bad)
	s.CreateTemporary(t, good)
	untilSettled(t, s, good)
	s.WaitCondition(t, bad, v1.TypeReady, corev1.ConditionFalse, "RepositoryNotFound")
	before := len(r.requests("/absent/"))
	eventually(
		t, "the absent package is tried again and again", func() bool { return len(r.requests("/absent/")) > before+2 },
	)
	waitReconciled(t, s.Env, good, bad)
	// An event that is made later is seen after these.
	r.push(t, "acme/absent:v1", meta("Provider", "absent", ""))
	waitReconciled(t, s.Env, bad)
	untilSettled(t, s, bad)
	untilEvents(t, s, bad, "Normal HealthyPackageRevision")

	if got := events(t, s, good); !slices.Equal(got, []string{"Normal HealthyPackageRevision"}) &&
		!slices.Equal(got, []string{"Normal HealthyPackageRevision", "Normal Progressing"}) {
		t.Errorf("events of a package that was installed: %v", got)
	}
	count := 0
	for _, e := range events(t, s, bad) {
		if strings.HasPrefix(e, "Warning RepositoryNotFound") {
			count++
		}
	}
	if got := events(t, s, bad); count != 1 {
		t.Errorf("events of a package that failed again and again: %v", got)
	}
}

func untilEvents(t *testing.T, s *testEnv, p v1.Package, want string) {
	t.Helper()
	wait.Until(t, limit, p.GetName()+" has the event "+want, func() (string, bool) {
		got := events(t, s, p)
		return fmt.Sprint(got), slices.Contains(got, want)
	})
}

// events returns the events of a package, with their count if it is greater than one.
func events(t *testing.T, s *testEnv, p v1.Package) []string {
	t.Helper()
	var list eventsv1.EventList
	if err := s.Client.List(t.Context(), &list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range list.Items {
		if e.Regarding.UID != p.GetUID() {
			continue
		}
		text := e.Type + " " + e.Reason
		if e.Series != nil {
			text += fmt.Sprintf(" %d times", e.Series.Count)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// A paused package is not reconciled. After the pause the missed changes are
// applied.
func TestPauseAndUnpause(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	first := pushed(t, r, "paused", provider("paused", crd("pausing.test", "Thing", "one")))
	second, _ := r.push(t, "acme/paused:v2", provider("paused", crd("pausing.test", "Thing", "two")))
	p := env.NewProvider("pausing", first)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	r.reset()
	s.audit.Reset("things.pausing.test")
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		p.Annotations = map[string]string{v1.AnnotationPaused: "true"}
		p.Spec.Package = second
	})
	s.WaitCondition(t, p, v1.TypeSynced, corev1.ConditionFalse, "paused")
	if got := p.GetCondition(v1.TypeSynced).Reason; got != v1.ReasonPaused {
		t.Errorf("the reason is %s", got)
	}
	// Health and content still describe the running revision, and the observed
	// generation does not change.
	if p.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue || p.Status.CurrentIdentifier != first {
		t.Errorf("status of the paused package: %+v", p.Status)
	}
	if got, _ := computed(t, s, v1.ProviderKind, p.Name); got.Status != status.InProgressStatus {
		t.Errorf("a paused package with a change that waits is %s", got.Status)
	}
	if seen := r.requests(""); len(seen) > 0 {
		t.Errorf("a paused package asked %v", seen)
	}
	untilEvents(t, s, p, "Normal ReconcilePaused")

	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Annotations = nil })
	untilSettled(t, s, p)
	if got := p.GetCondition(v1.TypeSynced); got.Status == corev1.ConditionFalse {
		t.Errorf("the package still reports a pause: %+v", got)
	}
	if got := schemaDescription(t, s, "things.pausing.test"); got != "two" {
		t.Errorf("the object is of version %s", got)
	}
}

// A paused revision changes none of its objects, and a paused package can be deleted.
func TestPausedRevision(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	p := env.NewProvider(
		"pausing-revision",
		pushed(t, r, "pausedrevision", provider("pausedrevision", crd("pausedrevision.test", "Thing", "one"))),
	)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	const name = "things.pausedrevision.test"
	rev := s.Revisions(t, p)[0]
	annotate(t, s, rev, `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`)
	wait.Until(t, limit, "the revision is paused", func() (string, bool) {
		c := s.Revisions(t, p)[0].GetCondition(v1.TypeSynced)
		return fmt.Sprint(c), c.Reason == v1.ReasonPaused
	})
	s.audit.Reset(name)
	annotate(t, s, object("CustomResourceDefinition", name), `{"metadata":{"ownerReferences":[]}}`)
	installForDrift(t, s, "pausedmarker")
	marker := object("CustomResourceDefinition", "things.pausedmarker.test")
	annotate(t, s, marker, `{"metadata":{"ownerReferences":[]}}`)
	untilOwned(t, s, marker, "Provider/pausedmarker*")
	if got := s.audit.Writes(name); len(got) > 0 {
		t.Errorf("a paused revision wrote %v", got)
	}
	annotate(t, s, rev, `{"metadata":{"annotations":{"crossplane.io/paused":null}}}`)
	untilOwners(t, s, name, "Provider/pausing-revision*")
	annotate(t, s, rev, `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`)
	remove(t, s, p)
}

func annotate(t *testing.T, s *testEnv, o client.Object, patch string) {
	t.Helper()
	err := s.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch)))
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}
