package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
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
	p := env.NewProvider("uninstall", ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, "Unknown", "")
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	s.audit.Reset("")

	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the provider, its revisions and its CRDs are deleted", func() (string, bool) {
		n := len(s.Revisions(t, p))
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1.Provider{})
		return fmt.Sprint(n, err), n == 0 && err != nil
	})
	calls := map[string]int{}
	for _, c := range s.audit.Calls("") {
		kind := c.Method + " " + c.Resource
		if c.Method == http.MethodGet && c.Name == "" {
			kind = "LIST " + c.Resource
		}
		if c.Subresource != "" {
			kind += "/" + c.Subresource
		}
		calls[kind]++
	}
	t.Log(calls)
	if n := calls["DELETE customresourcedefinitions"]; n != definitions {
		t.Errorf("%d deletions of CRDs, want %d", n, definitions)
	}
	// The watch shows the progress of the deletion.
	if n := calls["LIST customresourcedefinitions"]; n > 3 {
		t.Errorf("%d lists of CRDs", n)
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

// A deletion that orphans the objects of a provider keeps its CRDs, although the manager deletes them in other deletions.
func TestADeletionThatOrphansObjectsKeepsTheCRDs(t *testing.T) {
	const definitions = 20
	s := withExternalRuntimes(t)
	r := newRegistry(t)
	var crds, names []string
	for i := range definitions {
		kind := fmt.Sprintf("Keepsake%02d", i)
		crds = append(crds, crd("keepsakes.test", kind, "one"))
		names = append(names, strings.ToLower(kind)+"s.keepsakes.test")
	}
	ref, _ := r.push(t, "acme/keepsakes:v1", provider("keepsakes", crds...))
	s.start(t)
	p := env.NewProvider("keepsakes", ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, "Unknown", "")
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	if !controllerutil.ContainsFinalizer(p, v1.FinalizerRuntimeProtection) {
		t.Fatalf("the finalizers are %s", p.Finalizers)
	}
	orphaned := s.Revisions(t, p)
	s.audit.Reset("")

	if err := s.Client.Delete(t.Context(), p, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the provider is deleted", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1.Provider{})
		return fmt.Sprint(err), err != nil
	})
	for _, c := range s.audit.Calls("") {
		if c.Method == http.MethodDelete && c.Resource == "customresourcedefinitions" {
			t.Errorf("%s is deleted", c.Name)
		}
	}
	for _, name := range names {
		live := &apiextensionsv1.CustomResourceDefinition{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, live); err != nil {
			t.Error(err)
			continue
		}
		if live.DeletionTimestamp != nil || len(live.OwnerReferences) > 0 {
			t.Errorf("%s is deleted at %v, and has the owners %v", name, live.DeletionTimestamp, live.OwnerReferences)
		}
		if err := s.Client.Delete(t.Context(), live); err != nil {
			t.Error(err)
		}
	}
	for _, rev := range orphaned {
		if err := client.IgnoreNotFound(s.Client.Delete(t.Context(), rev)); err != nil {
			t.Error(err)
		}
	}
}
