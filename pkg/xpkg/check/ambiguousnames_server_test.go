package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// TestAmbiguousNamesAreThoseOfKubectl compares the table with the kinds of a real API server and of every release of
// Crossplane, and the preferences with those of kubectl.
func TestAmbiguousNamesAreThoseOfKubectl(t *testing.T) {
	config := cluster.Start(t)
	d := discovery.NewDiscoveryClientForConfigOrDie(config)
	_, served, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range served {
		for _, r := range list.APIResources {
			for _, short := range r.ShortNames {
				checkKnown(t, short, strings.Split(list.GroupVersion, "/")[0], r.Name)
			}
		}
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	type crd struct {
		group, plural, singular, short string
		asked                          string
	}
	crds := []crd{
		{"a.example.org", "providers", "provider", "", "providers"},
		{"z.example.org", "functions", "function", "", "functions"},
		{"a.example.org", "po", "podlike", "", "po"},
		{"a.example.org", "spaces", "ns", "", "ns"},
		{"a.example.org", "rollouts", "rollout", "deploy", "deploy"},
		{"a.example.org", "xrdlikes", "xrdlike", "xrds", "xrds"},
		{"z.example.org", "mrdlikes", "mrdlike", "mrds", "mrds"},
		{"a.example.org", "pods", "podalike", "", "pods"},
	}
	// Stand-ins for the kinds of Crossplane.
	standIns := []crd{
		{group: "pkg.crossplane.io", plural: "providers", singular: "provider"},
		{group: "pkg.crossplane.io", plural: "functions", singular: "function"},
		{group: "apiextensions.crossplane.io", plural: "compositeresourcedefinitions", singular: "compositeresourcedefinition", short: "xrds"},
		{group: "apiextensions.crossplane.io", plural: "managedresourcedefinitions", singular: "managedresourcedefinition", short: "mrds"},
	}
	for i, x := range slices.Concat(crds, standIns) {
		o := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: x.plural + "." + x.group}}
		o.Spec.Group, o.Spec.Scope = x.group, apiextensionsv1.ClusterScoped
		o.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
			Kind: fmt.Sprintf("Kind%d", i), Plural: x.plural, Singular: x.singular,
		}
		if x.short != "" {
			o.Spec.Names.ShortNames = []string{x.short}
		}
		schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
		o.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: schema,
		}}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(t.Context(), o) })
	}
	find := func(name string) (apischema.GroupVersionResource, error) {
		cached := orderedDiscovery{memory.NewMemCacheClient(d)}
		mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
		return mapper.ResourceFor(apischema.GroupVersionResource{Resource: name})
	}
	for _, x := range slices.Concat(crds, standIns) {
		wait.Until(t, time.Minute, x.plural+"."+x.group+" is served", func() (string, bool) {
			cached := memory.NewMemCacheClient(d)
			_, err := restmapper.NewDeferredDiscoveryRESTMapper(cached).
				ResourceFor(apischema.GroupVersionResource{Group: x.group, Resource: x.plural})
			return fmt.Sprint(err), err == nil
		})
	}
	for _, x := range crds {
		got, err := find(x.asked)
		if err != nil && !apimeta.IsAmbiguousError(err) {
			t.Fatal(err)
		}
		if _, hides, _ := ambiguity(
			x.group, x.asked, x.short == x.asked,
		); hides != (got.GroupResource() == apischema.GroupResource{Group: x.group, Resource: x.plural}) {
			t.Errorf("%s of %s.%s: kubectl finds %s, and ambiguity returns %v", x.asked, x.plural, x.group, got, hides)
		}
	}
}

// orderedDiscovery lists kinds in the order of their groups, as the discovery client of kubectl does.
type orderedDiscovery struct {
	discovery.CachedDiscoveryInterface
}

func (d orderedDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.ServerGroupsAndResources(d)
}

// TestAmbiguousNamesHaveEveryKindOfCrossplane compares the table with the kinds of each release of Crossplane 1 and 2.
func TestAmbiguousNamesHaveEveryKindOfCrossplane(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(
		corpus.Dir(t), "core-crds", "crossplane__crossplane@*", "cluster", "crds", "*.yaml",
	))
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		group, names := crd.Spec.Group, crd.Spec.Names
		if i := slices.IndexFunc(builtinNames, func(b builtin) bool { return b.resource.Group == group }); i < 0 {
			continue // A group of early releases.
		}
		for _, name := range append(names.ShortNames, names.Singular, names.Plural) {
			checkKnown(t, name, group, names.Plural)
		}
	}
}

// checkKnown checks that the table has a name of a kind.
func checkKnown(t *testing.T, name, group, plural string) {
	t.Helper()
	if group == "v1" {
		group = ""
	}
	if !slices.ContainsFunc(builtinNames, func(b builtin) bool {
		return b.resource == apischema.GroupResource{Group: group, Resource: plural} &&
			(slices.Contains(b.full, name) || slices.Contains(b.shortNames, name))
	}) && group != "events.k8s.io" && !strings.Contains(plural, "/") {
		t.Errorf("%s of %s.%s is missing", name, plural, group)
	}
}
