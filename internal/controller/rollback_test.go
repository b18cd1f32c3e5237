package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A new version of which admission denies an object after another one was written is rolled back: objects that
// were written are restored, the condition contains both reasons, and the version
// is retried only after a change of the package. The policy admits every dry run, as one that changes after it.
//
// hardening: H7, I-9
func TestRejectedVersionIsRolledBack(t *testing.T) {
	s := newEnv(t)
	s.options.ActivationDeadline = time.Hour
	r := newRegistry(t)
	kept, stored := crd("rollback.test", "Kept", "one"), crd("rollback.test", "Stored", "one")
	first, _ := r.push(t, "acme/rollback:v1", provider("rollback", kept, stored))
	refused, _ := r.push(t, "acme/rollback:v2", provider("rollback",
		crd("rollback.test", "Kept", "two"), crd("rollback.test", "Stored", denied)))
	good, _ := r.push(t, "acme/rollback:v3", provider("rollback", crd("rollback.test", "Kept", "three"), stored))
	s.start(t)
	denyCRDsUnless(t, s, "request.dryRun")

	p := env.NewProvider("rollback", first)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	running := p.Status.CurrentRevision

	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = refused })
	untilRolledBack(t, s, p)
	b := p.Status.Rollback
	if b.To != running || b.From != p.Status.CurrentRevision || !strings.HasPrefix(b.Message, "PartlyWritten: ") ||
		!strings.Contains(b.Message, "storeds.rollback.test") {
		t.Errorf("rolled back: %+v", b)
	}
	untilStates(t, s, p, "v2:2", "v1:3*")
	untilOwners(t, s, "kepts.rollback.test", "Provider/rollback*")
	wait.Until(t, env.Limit, "the CRD that was written before the rejection is restored", func() (string, bool) {
		got := schemaDescription(t, s, "kepts.rollback.test")
		return got, got == "one"
	})

	// A restart remembers; a change of the spec tries again.
	generation := b.Generation
	waitReconciled(t, s.Env, p)
	s.WaitPackage(t, p, "is rolled back again", func() bool {
		return p.Status.Rollback != nil && p.Status.Rollback.Generation > generation && rolledBack(p)
	})

	upgradeTo(t, s, p, good)
	if p.Status.Rollback != nil || !p.Status.Activation.Healthy {
		t.Errorf("after a good version: %+v, %+v", p.Status.Rollback, p.Status.Activation)
	}
	remove(t, s, p)
}

// A version whose CRD serves no version is rolled back at once, and as the first one it is refused. Only other tools
// build it.
func TestAVersionWithoutServedVersionsIsRolledBack(t *testing.T) {
	s := newEnv(t)
	s.options.ActivationDeadline = time.Hour
	r := newRegistry(t)
	served := crd("dark.test", "Lamp", "one")
	dark := strings.Replace(served, "served: true", "served: false", 1)
	first, _ := r.push(t, "acme/dark:v1", provider("dark", served))
	second, _ := r.push(t, "acme/dark:v2", provider("dark", dark))
	s.start(t)
	p := env.NewProvider("dark", second)
	s.CreateTemporary(t, p)
	untilUpdateRefused(t, s, p, "NoServedVersion")
	upgradeTo(t, s, p, first)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = second })
	untilRolledBack(t, s, p)
	if b := p.Status.Rollback; !strings.HasPrefix(b.Message, "NoServedVersion: ") || b.RetryTime != nil {
		t.Errorf("rolled back: %+v", b)
	}
	remove(t, s, p)
}

// After several defective versions in a row, the package is rolled back to the last healthy
// version, and not to the version that was tried before.
func TestRollbackSelectsAHealthyRevision(t *testing.T) {
	s := newEnv(t)
	s.options.ActivationDeadline = 5 * time.Second
	r := newRegistry(t)
	stored := crd("worked.test", "Stored", "one")
	dropped := crd("worked.test", "Stored", denied)
	works, _ := r.push(t, "acme/worked:v1", provider("worked", stored))
	bad, _ := r.push(t, "acme/worked:v2", provider("worked", dropped))
	worse, _ := r.push(t, "acme/worked:v3", provider("worked", dropped, crd("worked.test", "More", "three")))
	s.start(t)
	denyCRDs(t, s)

	p := env.NewProvider("worked", works)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	worked := p.Status.CurrentRevision
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = bad })
	untilRolledBack(t, s, p)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = worse })
	s.WaitPackage(t, p, "is rolled back again", func() bool {
		return p.Status.Rollback != nil && p.Status.Rollback.Generation == p.Generation && rolledBack(p)
	})
	if b := p.Status.Rollback; b.To != worked {
		t.Errorf("rolled back to %s, and %s worked", b.To, worked)
	}
	untilStates(t, s, p, "v2:2", "v3:4", "v1:5*")
	remove(t, s, p)
}

func rolledBack(p v1.Package) bool {
	healthy, ready, status := p.GetCondition(v1.TypeHealthy), p.GetCondition(v1.TypeStalled), p.PackageStatus()
	return healthy.Status == corev1.ConditionFalse && healthy.Reason == v1.ReasonRolledBack &&
		strings.HasPrefix(healthy.Message, "RolledBack: ") &&
		ready.Status == corev1.ConditionTrue && status.Activation != nil && status.Activation.Revision == status.Rollback.To
}

func untilRolledBack(t *testing.T, s *testEnv, p v1.Package) {
	t.Helper()
	s.WaitPackage(t, p, "is rolled back", func() bool { return p.PackageStatus().Rollback != nil && rolledBack(p) })
}

// A package that was never healthy is not rolled back, and its installation is retried.
func TestNothingToRollBackTo(t *testing.T) {
	s := newEnv(t)
	// Every reconciliation is later than the deadline.
	s.options.ActivationDeadline = time.Nanosecond
	r := newRegistry(t)
	ref, _ := r.push(t, "acme/first:v1", meta(
		"Provider", "first", "spec:\n  dependsOn:\n  - provider: registry.example.com/acme/absent\n    version: '>=v1'\n",
	))
	s.start(t)
	p := env.NewProvider("first", ref)
	s.CreateTemporary(t, p)
	s.WaitPackage(t, p, "is activated", func() bool { return p.Status.Activation != nil })
	waitReconciled(t, s.Env, p)
	if p.Status.Rollback != nil {
		t.Errorf("rolled back to %+v", p.Status.Rollback)
	}
	s.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "DependencyMissing")
	remove(t, s, p)
}
