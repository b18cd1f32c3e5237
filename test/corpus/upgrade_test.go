package corpus_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// most is the number of definitions of a package that is upgraded: the API server needs several megabytes for each.
const most = 260

// quickPairs are the upgrades that each run of the tests makes: they drop stored versions, and remove definitions.
var quickPairs = []string{"provider-alibaba@v0.5.0", "provider-mongodbatlas@v0.2.1"}

// Published packages are upgraded and rolled back with a custom resource of each kind, generated from its schema. Each
// change is made whole, or refused before the first write; every custom resource stays readable, and can be updated.
func TestUpgradesOfTheCorpusLoseNothing(t *testing.T) {
	dir := corpus.Dir(t)
	text, err := os.ReadFile(filepath.Join(dir, "upgrades.json"))
	if err != nil {
		t.Fatal(err)
	}
	var pairs []struct{ From, To string }
	if err := json.Unmarshal(text, &pairs); err != nil {
		t.Fatal(err)
	}
	pusher := remote.New(remote.Options{})
	t.Cleanup(pusher.Close)
	e := env.New(t)
	e.RunManager(t, env.OpenContent(t, t.TempDir(), fetch.Options{}).Options())
	for _, pair := range pairs {
		isQuick := slices.ContainsFunc(quickPairs, func(name string) bool { return strings.HasSuffix(pair.From, name) })
		if !lane.IsFull() && !isQuick {
			continue
		}
		if len(definitionFiles(dir, pair.From)) > most {
			continue
		}
		t.Run(filepath.Base(pair.From)+" to "+filepath.Base(pair.To), func(t *testing.T) {
			from, fromRef := publishFolder(t, pusher, e.Registry, filepath.Join(dir, pair.From))
			to, toRef := publishFolder(t, pusher, e.Registry, filepath.Join(dir, pair.To))
			if n := len(definitionsOf(to)); n > most {
				t.Skipf("%d definitions", n)
			}
			u := &upgrade{Env: e, p: v1.NewPackage(string(from.Meta.Kind))}
			u.p.SetName(oci.ToDNSLabel(fromRef.Repository))
			u.p.PackageSpec().Package, u.p.PackageSpec().SkipDependencyResolution = fromRef.String(), true
			u.p.SetAnnotations(map[string]string{v1.AnnotationOnDelete: "cascade=100000"})
			e.Create(t, u.p)
			t.Cleanup(func() { e.CleanUp(t, u.p) })
			u.settle(t)
			u.populate(t, from, true)
			if u.move(t, "upgrade", to, toRef) != "" {
				// It is refused because of fields that the new version does not have.
				u.populate(t, from, false)
				u.move(t, "upgrade with required fields", to, toRef)
			}
			u.move(t, "way back", from, fromRef)
			crds := definitionsOf(from)
			maps.Copy(crds, definitionsOf(to))
			remove(t, e.Client, u.p, slices.Collect(maps.Keys(crds)))
		})
	}
}

func definitionFiles(dir, item string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, item, "package", "crds", "*.yaml")) // The pattern is valid.
	return files
}

// upgrade is a package that moves between two versions.
type upgrade struct {
	*env.Env
	p       v1.Package
	objects []*unstructured.Unstructured
	// stuck are the definitions with their versions in which the custom resource cannot be updated from the beginning,
	// because it is not valid in this version.
	stuck map[string]bool
}

func definitionsOf(pkg *xpkg.Package) map[string]bool {
	out := map[string]bool{}
	for _, o := range pkg.Objects {
		if o.GVK.Kind == "CustomResourceDefinition" {
			out[o.Name] = true
		}
	}
	return out
}

// settle waits until the package is healthy or refused, and returns the reason of a refusal.
func (u *upgrade) settle(t *testing.T) (refusal string) {
	t.Helper()
	wait.Until(t, limit, "the package is healthy or refused", func() (string, bool) {
		if err := u.Client.Get(t.Context(), client.ObjectKeyFromObject(u.p), u.p); err != nil {
			return err.Error(), false
		}
		ready := u.p.GetCondition(v1.TypeReady)
		if ready.ObservedGeneration != u.p.GetGeneration() {
			return "", false
		}
		stalled := u.p.GetCondition("Stalled").Status == corev1.ConditionTrue
		refusal = ""
		if ready.Status != corev1.ConditionTrue {
			refusal = string(ready.Reason) + ": " + ready.Message
		}
		return inventory.HealthMessage(u.p), ready.Status == corev1.ConditionTrue || stalled ||
			slices.Contains([]string{
				"BreaksObjects", "StoredVersionInUse", "ImmutableField", "NameTaken", "ConversionWithoutRuntime", "NoServedVersion",
			}, string(ready.Reason))
	})
	return refusal
}

// live returns the definitions of the cluster among some.
func (u *upgrade) live(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := u.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// populate creates a custom resource of each kind, in place of the former ones: with all fields, where that is possible,
// or with the required ones. Kinds with a conversion webhook have none, because no runtime serves it here.
func (u *upgrade) populate(t *testing.T, pkg *xpkg.Package, isFull bool) {
	t.Helper()
	for _, o := range u.objects {
		u.Delete(t, o)
		u.WaitGone(t, o)
	}
	u.objects, u.stuck = nil, map[string]bool{}
	live, skipped := u.live(t), 0
	for _, name := range slices.Sorted(maps.Keys(definitionsOf(pkg))) {
		crd := live[name]
		var created *unstructured.Unstructured
		if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
			continue
		}
		if isFull {
			created = u.create(t, crd, true)
		}
		if created == nil {
			created = u.create(t, crd, false)
		}
		if created == nil {
			skipped++
			continue
		}
		u.objects = append(u.objects, created)
		for _, v := range crd.Spec.Versions {
			if v.Served && u.touch(t, created, v.Name, "new") != nil {
				u.stuck[name+"/"+v.Name] = true
			}
		}
	}
	t.Logf("%d custom resources; %d kinds have rules that no generated one satisfies", len(u.objects), skipped)
	if isFull && skipped > len(u.objects) {
		t.Error("most kinds have no custom resource")
	}
}

// create creates a custom resource in the storage version of a definition, or returns nil if it is not valid.
func (u *upgrade) create(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, isFull bool) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	v := crd.Spec.Versions[i]
	o := &unstructured.Unstructured{Object: map[string]any{}}
	if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
		if content, ok := fill(v.Schema.OpenAPIV3Schema, isFull, 0).(map[string]any); ok {
			o.Object = content
		}
	}
	delete(o.Object, "metadata")
	status := o.Object["status"]
	delete(o.Object, "status")
	o.SetAPIVersion(crd.Spec.Group + "/" + v.Name)
	o.SetKind(crd.Spec.Names.Kind)
	o.SetName("corpus")
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		o.SetNamespace("default")
	}
	err := u.Client.Create(t.Context(), o)
	switch {
	case err == nil:
		if status != nil && v.Subresources != nil && v.Subresources.Status != nil {
			reported := o.DeepCopy()
			reported.Object["status"] = status
			if err := u.Client.Status().Update(t.Context(), reported); err != nil && !apierrors.IsInvalid(err) {
				t.Fatalf("%s: %v", crd.Name, err)
			}
		}
		return o
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return nil
	}
	t.Fatalf("%s: %v", crd.Name, err)
	return nil
}

// move requests another version, and checks that the change is whole or refused, and that nothing is lost. It returns the
// reason of a refusal.
func (u *upgrade) move(t *testing.T, how string, pkg *xpkg.Package, ref oci.Reference) (refusal string) {
	t.Helper()
	before, began := u.live(t), time.Now()
	former := u.p.PackageSpec().Package
	env.Update(t, u.Env, u.p, func(p v1.Package) { p.PackageSpec().Package = ref.String() })
	refusal = u.settle(t)
	after := u.live(t)
	if refusal != "" {
		for name, was := range before {
			if is := after[name]; is == nil || is.Generation != was.Generation {
				t.Errorf("%s: refused, and %s was written: %s", how, name, refusal)
			}
		}
		for name := range after {
			if before[name] == nil {
				t.Errorf("%s: refused, and %s was created", how, name)
			}
		}
		env.Update(t, u.Env, u.p, func(p v1.Package) { p.PackageSpec().Package = former })
		if again := u.settle(t); again != "" {
			t.Errorf("%s: the former version does not come back: %s", how, again)
		}
	}
	for name := range definitionsOf(pkg) {
		if refusal == "" && (after[name] == nil || !established(after[name])) {
			t.Errorf("%s: %s is missing", how, name)
		}
	}
	u.check(t, how, after)
	const shown = 300
	outcome := "whole"
	if refusal != "" {
		outcome = "refused: " + refusal[:min(shown, len(refusal))]
	}
	t.Logf("%s: %d kinds, %d custom resources, %s: %s", how, len(definitionsOf(pkg)), len(u.objects),
		time.Since(began).Round(100*time.Millisecond), outcome)
	return refusal
}

// check reads and updates all custom resources.
func (u *upgrade) check(t *testing.T, how string, live map[string]*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	byKind := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range live {
		byKind[crd.Spec.Group+"/"+crd.Spec.Names.Kind] = crd
	}
	for _, o := range u.objects {
		gvk := o.GroupVersionKind()
		crd := byKind[gvk.Group+"/"+gvk.Kind]
		if crd == nil {
			t.Errorf("%s: the definition of %s is gone", how, gvk.Kind)
			continue
		}
		if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
			continue // The runtime of the new version would convert it.
		}
		served := map[string]bool{}
		for _, v := range crd.Spec.Versions {
			served[v.Name] = v.Served
		}
		for _, stored := range crd.Status.StoredVersions {
			if _, ok := served[stored]; !ok {
				t.Errorf("%s: %s has the stored version %s, which it does not contain", how, crd.Name, stored)
			}
		}
		for version, isServed := range served {
			if !isServed {
				continue
			}
			is := &unstructured.Unstructured{}
			is.SetAPIVersion(gvk.Group + "/" + version)
			is.SetKind(gvk.Kind)
			if err := u.Client.Get(t.Context(), client.ObjectKeyFromObject(o), is); err != nil {
				t.Errorf("%s: %s in %s cannot be read: %v", how, crd.Name, version, err)
				continue
			}
			if is.GetUID() != o.GetUID() {
				t.Errorf("%s: the custom resource of %s was replaced", how, crd.Name)
			}
			for _, f := range is.GetManagedFields() {
				_, name, _ := strings.Cut(f.APIVersion, "/")
				if _, ok := served[name]; !ok {
					t.Errorf("%s: a field manager of %s names the version %s", how, crd.Name, name)
				}
			}
			if err := u.touch(t, o, version, how); err != nil && !u.stuck[crd.Name+"/"+version] {
				t.Errorf("%s: the custom resource of %s cannot be updated in %s: %v", how, crd.Name, version, err)
			}
		}
	}
}

// touch changes a label of a custom resource.
func (u *upgrade) touch(t *testing.T, o *unstructured.Unstructured, version, label string) error {
	t.Helper()
	is := &unstructured.Unstructured{}
	is.SetAPIVersion(o.GroupVersionKind().Group + "/" + version)
	is.SetKind(o.GetKind())
	is.SetNamespace(o.GetNamespace())
	is.SetName(o.GetName())
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"moved":%q}}}`, strings.ReplaceAll(label, " ", "-"))
	return u.Client.Patch(t.Context(), is, client.RawPatch(types.MergePatchType, patch))
}

// words are values of which many satisfy the pattern of a string.
var words = strings.Fields("a a1 1 1.0.0 v1 A Aa1 https://example.org example.org a@example.org 10.0.0.0/8 10.0.0.1 a/b a:b 10m 1Gi 2030-01-02T03:04:05Z " +
	"arn:aws:iam::123456789012:role/a 00000000-0000-4000-8000-000000000000 123456789012 us-east-1")

// fill returns a value that a schema permits, as far as that is simple: with all fields, or with the required ones.
func fill(s *apiextensionsv1.JSONSchemaProps, isFull bool, depth int) any {
	const deepest = 12
	switch {
	case len(s.Enum) > 0:
		return decoded(s.Enum[0].Raw)
	case s.Default != nil && len(s.Default.Raw) > 0:
		return decoded(s.Default.Raw)
	case s.XIntOrString:
		return int64(1)
	}
	switch s.Type {
	case "object":
		out := map[string]any{}
		for name, property := range s.Properties {
			if (isFull && depth < deepest) || slices.Contains(s.Required, name) {
				out[name] = fill(&property, isFull, depth+1)
			}
		}
		if len(s.Properties) == 0 && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && isFull {
			out["a"] = fill(s.AdditionalProperties.Schema, isFull, depth+1)
		}
		return out
	case "array":
		n := int64(0)
		if isFull {
			n = 1
		}
		if s.MinItems != nil {
			n = max(n, *s.MinItems)
		}
		out := []any{}
		for range n {
			if s.Items != nil && s.Items.Schema != nil {
				out = append(out, fill(s.Items.Schema, isFull, depth+1))
			}
		}
		return out
	case "integer":
		if s.Minimum != nil {
			return int64(*s.Minimum)
		}
		return int64(1)
	case "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1.5
	case "boolean":
		return true
	case "string":
		return word(s)
	}
	return map[string]any{}
}

func word(s *apiextensionsv1.JSONSchemaProps) string {
	switch s.Format {
	case "date-time":
		return "2030-01-02T03:04:05Z"
	case "byte":
		return "YQ=="
	}
	candidates := words
	if s.MinLength != nil {
		candidates = append(slices.Clone(words), strings.Repeat("a", int(*s.MinLength)))
	}
	pattern, err := regexp.Compile(s.Pattern)
	for _, w := range candidates {
		fits := (s.MinLength == nil || int64(len(w)) >= *s.MinLength) && (s.MaxLength == nil || int64(len(w)) <= *s.MaxLength)
		if fits && (err != nil || pattern.MatchString(w)) {
			return w
		}
	}
	return "a"
}

func decoded(raw []byte) any {
	var out any
	_ = json.Unmarshal(raw, &out)
	return out
}
