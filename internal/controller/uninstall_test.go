package controller_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// runningProvider starts the manager, and returns a provider with CRDs whose runtime runs.
func runningProvider(t *testing.T, s *testEnv, name string, crds ...string) *v1.Provider {
	t.Helper()
	ref, _ := newRegistry(t).push(t, "acme/"+name+":v1", provider(name, crds...))
	s.start(t)
	p := env.NewProvider(name, ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeHealthy, "Unknown", "")
	reportHealth(t, s, p, v1.RuntimeHealthy())
	untilSettled(t, s, p)
	return p
}

// Uninstalling a provider whose runtime runs deletes each CRD with one write. The number of other calls does
// not grow with the number of CRDs, and nothing is logged as an error.
func TestUninstallingAProviderCostsOneWriteForEachCRD(t *testing.T) {
	const definitions = 40
	s := withExternalRuntimes(t)
	log := &logRecorder{}
	s.log = log
	var crds []string
	for i := range definitions {
		crds = append(crds, crd("uninstall.test", fmt.Sprintf("Thing%02d", i), "one"))
	}
	p := runningProvider(t, s, "uninstall", crds...)
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

// A deletion that orphans the objects of a provider keeps its CRDs, although the manager deletes them in other
// deletions.
func TestADeletionThatOrphansObjectsKeepsTheCRDs(t *testing.T) {
	const definitions = 20
	s := withExternalRuntimes(t)
	var crds, names []string
	for i := range definitions {
		kind := fmt.Sprintf("Keepsake%02d", i)
		crds = append(crds, crd("keepsakes.test", kind, "one"))
		names = append(names, strings.ToLower(kind)+"s.keepsakes.test")
	}
	p := runningProvider(t, s, "keepsakes", crds...)
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

// A provider reads the ProviderConfig of a managed resource to delete it, and counts the usages of a ProviderConfig to
// release it. So their CRDs are deleted when all others are gone, and usages at the end.
func TestConfigurationsOfAProviderAreDeletedLast(t *testing.T) {
	s := withExternalRuntimes(t)
	p := runningProvider(t, s, "stages",
		crd("stages.test", "ProviderConfigUsage", "one"), crd("stages.test", "ClusterProviderConfig", "one"),
		crd("stages.test", "Queue", "one"))
	hold := func(kind string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "stages.test", Version: "v1", Kind: kind})
		o.SetName("held")
		o.SetFinalizers([]string{"stages.test/finalizer"})
		s.CreateTemporary(t, o)
		return o
	}
	// A former version contained the CRD of buckets, and its revision is deleted.
	former := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(crd("stages.test", "Bucket", "one")), former); err != nil {
		t.Fatal(err)
	}
	former.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: p.Name, UID: p.UID,
	}}
	s.CreateTemporary(t, former)
	wait.Until(t, limit, "buckets are served", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(former), former)
		established := slices.ContainsFunc(former.Status.Conditions,
			func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			})
		return fmt.Sprint(err, former.Status.Conditions), established
	})
	bucket, config := hold("Bucket"), hold("ClusterProviderConfig")
	release := func(o *unstructured.Unstructured) {
		env.Update(t, s.Env, o, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	}
	isDeleting := func(plural string) bool {
		live := &apiextensionsv1.CustomResourceDefinition{}
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: plural + ".stages.test"}, live)
		return apierrors.IsNotFound(err) || err == nil && live.DeletionTimestamp != nil
	}
	await := func(last string, kept ...string) {
		t.Helper()
		wait.Until(t, limit, last+" are deleted", func() (string, bool) { return "", isDeleting(last) })
		for _, plural := range kept {
			if isDeleting(plural) {
				t.Errorf("%s are deleted with %s", plural, last)
			}
		}
	}

	answerDeletion(t, s, p, "cascade=2")
	s.Delete(t, p)
	await("buckets", "clusterproviderconfigs", "providerconfigusages")
	wait.Until(t, limit, "the other CRD is gone", func() (string, bool) {
		err := s.Client.Get(
			t.Context(), client.ObjectKey{Name: "queues.stages.test"}, &apiextensionsv1.CustomResourceDefinition{},
		)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	await("buckets", "clusterproviderconfigs", "providerconfigusages")
	release(bucket)
	await("clusterproviderconfigs", "providerconfigusages")
	release(config)
	s.WaitGone(t, p)
	await("providerconfigusages")
}
