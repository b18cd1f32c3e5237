package controller_test

import (
	"fmt"
	"net/http"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// Uninstalling a provider whose runtime runs deletes each CRD with one write. The number of other calls does
// not grow with the number of CRDs, and nothing is logged as an error.
func TestUninstallingAProviderCostsOneWriteForEachCRD(t *testing.T) {
	const definitions = 40
	s := withExternalRuntimes(t)
	log := &logRecorder{}
	s.log = log
	r := newRegistry(t)
	var crds []string
	for i := range definitions {
		crds = append(crds, crd("uninstall.test", fmt.Sprintf("Thing%02d", i), "one"))
	}
	ref, _ := r.push(t, "acme/uninstall:v1", provider("uninstall", crds...))
	s.start(t)
	p := newProvider("uninstall", ref)
	create(t, s.client, p)
	untilCondition(t, s.client, p, v1.TypeHealthy, "Unknown", "")
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	s.audit.reset("")

	if err := s.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the provider, its revisions and its CRDs are deleted", func() (string, bool) {
		n := len(revisionsOf(t, s.client, p))
		err := s.client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1.Provider{})
		return fmt.Sprint(n, err), n == 0 && err != nil
	})
	calls := map[string]int{}
	for _, c := range s.audit.callsFor("") {
		kind := c.method + " " + c.resource
		if c.method == http.MethodGet && c.name == "" {
			kind = "LIST " + c.resource
		}
		if c.subresource != "" {
			kind += "/" + c.subresource
		}
		calls[kind]++
	}
	t.Log(calls)
	if n := calls["DELETE customresourcedefinitions"]; n != definitions {
		t.Errorf("%d deletions of CRDs, want %d", n, definitions)
	}
	for kind, n := range calls {
		if n > definitions/2 && kind != "DELETE customresourcedefinitions" {
			t.Errorf("%d calls %s for %d CRDs", n, kind, definitions)
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, line := range log.errors {
		t.Errorf("logged as an error: %s", line)
	}
}
