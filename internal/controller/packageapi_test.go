package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// overwrittenCRD is the CRD that tests overwrite.
const overwrittenCRD = "providers.pkg.crossplane.io"

// prune removes fields of the status from a schema, as the CRD of another package manager lacks them. It keeps
// conditions.
func prune(d *apiextensionsv1.CustomResourceDefinition) {
	for i := range d.Spec.Versions {
		properties := d.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties
		status := properties["status"]
		status.Description = "The status of another program."
		status.Default = nil
		for name := range status.Properties {
			if name != "conditions" {
				delete(status.Properties, name)
			}
		}
		properties["status"] = status
	}
}

func isPruned(d *apiextensionsv1.CustomResourceDefinition) bool {
	_, ok := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["resolvedPackage"]
	return !ok
}

// overwrite prunes the CRD as a client with a field manager does. It keeps the annotations.
func (s *testEnv) overwrite(ctx context.Context, manager string) error {
	d := newCRD()
	if err := s.Client.Get(ctx, client.ObjectKey{Name: overwrittenCRD}, d); err != nil {
		return err
	}
	prune(d)
	return s.Client.Update(ctx, d, client.FieldOwner(manager))
}

func (s *testEnv) untilRestored(t *testing.T) {
	t.Helper()
	wait.Until(t, limit, overwrittenCRD+" is restored", func() (string, bool) {
		d := newCRD()
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: overwrittenCRD}, d)
		return "", err == nil && !isPruned(d)
	})
}

// Another program that overwrites the CRDs of the package API, as Crossplane does when it starts, breaks no
// package: the CRDs are restored, while the manager runs and when it starts. Only the live spec shows the change of a
// program that uses the field manager of xpkg.
//
// hardening: J14
func TestCRDsOfThePackageAPIAreRestored(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	log := &logRecorder{}
	s.log = log
	stop := s.start(t)
	ref, _ := r.push(t, "acme/restored:v1", provider("restored", crd("restored.test", "Thing", "one")))
	p := env.NewProvider("restored", ref)
	s.CreateTemporary(t, p)
	s.WaitHealthy(t, p)

	if err := s.overwrite(t.Context(), "crossplane"); err != nil {
		t.Fatal(err)
	}
	s.untilRestored(t)
	log.until(t, `the field manager "crossplane" changed a CRD of the package API`)
	waitReconciled(t, s.Env, p)
	s.WaitHealthy(t, p)

	for _, manager := range []string{"crossplane", plan.FieldManager} {
		stop()
		if err := s.overwrite(t.Context(), manager); err != nil {
			t.Fatal(err)
		}
		stop = s.start(t)
		s.untilRestored(t)
		waitReconciled(t, s.Env, p)
		s.WaitHealthy(t, p)
	}
	remove(t, s, p)
}

// A program that keeps overwriting a CRD of the package API causes a bounded number of writes. The packages name the
// program, and recover when it has stopped.
//
// hardening: J12
func TestContendedCRDOfThePackageAPIIsReported(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	stop := s.start(t)
	ref, _ := r.push(t, "acme/contended:v1", provider("contended", crd("contended.test", "Thing", "one")))
	p := env.NewProvider("contended", ref)
	s.CreateTemporary(t, p)
	s.WaitHealthy(t, p)

	overwrites, end := s.keepOverwriting(t, "crossplane")
	wait.Until(t, limit, "the package names the other program", func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		ready := p.GetCondition(v1.TypeReady)
		return fmt.Sprintf("%d overwrites, %+v", overwrites.Load(), p.Status.Conditions),
			ready.Status == corev1.ConditionFalse && string(ready.Reason) == packageapi.ErrOverwritten.Name
	})
	message := p.GetCondition(v1.TypeHealthy).Message
	for _, part := range []string{"another program keeps overwriting CustomResourceDefinition " + overwrittenCRD +
		`: the field manager "crossplane" changed it at`, "had written it 5 times", "`kubectl get crd " + overwrittenCRD +
		" -o yaml --show-managed-fields`"} {
		if !strings.Contains(message, part) {
			t.Errorf("the condition lacks %q: %s", part, message)
		}
	}
	if ready := p.GetCondition(v1.TypeInstalled); ready.Status != corev1.ConditionTrue {
		t.Errorf("what is installed is not any more: %+v", ready)
	}
	// Each restored CRD was overwritten once more than it was restored.
	if n := int(overwrites.Load()); n != contention.DefaultLimits.Writes+1 {
		t.Errorf("the manager restored the CRD %d times, want %d", n-1, contention.DefaultLimits.Writes)
	}
	end()

	stop()
	s.start(t)
	s.untilRestored(t)
	waitReconciled(t, s.Env, p)
	s.WaitHealthy(t, p)
	remove(t, s, p)
}

// keepOverwriting overwrites the CRD each time that it is restored, until end is called. It returns the number of
// overwrites.
func (s *testEnv) keepOverwriting(t *testing.T, manager string) (overwrites *atomic.Int32, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	overwrites = &atomic.Int32{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			d := newCRD()
			if s.Client.Get(ctx, client.ObjectKey{Name: overwrittenCRD}, d) == nil && !isPruned(d) &&
				s.overwrite(ctx, manager) == nil {
				overwrites.Add(1)
			}
			select {
			case <-ctx.Done():
			case <-time.After(poll / 20):
			}
		}
	}()
	end = func() {
		cancel()
		<-done
	}
	t.Cleanup(end)
	return overwrites, end
}
