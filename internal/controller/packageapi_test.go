package controller_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// Another program that overwrites the CRDs of the package API, as Crossplane does when it starts, breaks no
// package: the CRDs are restored, while the manager runs and when it starts.
func TestCRDsOfThePackageAPIAreRestored(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	log := &logRecorder{}
	s.log = log
	stop := s.start(t)
	ref, _ := r.push(t, "acme/restored:v1", provider("restored", crd("restored.test", "Thing", "one")))
	p := newProvider("restored", ref)
	create(t, s.client, p)
	untilHealthy(t, s.client, p)

	const name = "providers.pkg.crossplane.io"
	overwrite := func() {
		t.Helper()
		d := newCRD()
		if err := s.client.Get(t.Context(), client.ObjectKey{Name: name}, d); err != nil {
			t.Fatal(err)
		}
		for i := range d.Spec.Versions {
			delete(d.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties, "status")
		}
		if err := s.client.Update(t.Context(), d, client.FieldOwner("crossplane")); err != nil {
			t.Fatal(err)
		}
	}
	untilRestored := func() {
		t.Helper()
		wait.Until(t, limit, name+" is restored", func() (string, bool) {
			d := newCRD()
			err := s.client.Get(t.Context(), client.ObjectKey{Name: name}, d)
			_, ok := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
			return "", err == nil && ok
		})
	}
	overwrite()
	untilRestored()
	log.until(t, "another program changed or deleted a CRD of the package API")
	waitReconciled(t, s.client, p)
	untilHealthy(t, s.client, p)

	stop()
	overwrite()
	s.start(t)
	untilRestored()
	waitReconciled(t, s.client, p)
	untilHealthy(t, s.client, p)
	remove(t, s, p)
}
