package check

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// release validates objects with the CRDs of one release of Crossplane.
type release struct {
	name  string
	kinds map[gvk]func(object map[string]any) bool
	// schemas are the schemas of the kinds.
	schemas map[gvk]*apiextensionsv1.JSONSchemaProps
}

// releases returns the releases of Crossplane in the corpus that have the kinds of packages.
func releases(t *testing.T) []release {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(corpus.Dir(t), "core-crds", "crossplane__crossplane@*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []release
	for _, dir := range dirs {
		r := release{
			name: filepath.Base(dir), kinds: map[gvk]func(map[string]any) bool{},
			schemas: map[gvk]*apiextensionsv1.JSONSchemaProps{},
		}
		files, err := filepath.Glob(filepath.Join(dir, "cluster", "crds", "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var crd apiextensionsv1.CustomResourceDefinition
			if yaml.Unmarshal(text, &crd) != nil || crd.APIVersion != "apiextensions.k8s.io/v1" {
				continue // A release before CRDs of version v1.
			}
			for _, v := range crd.Spec.Versions {
				id := gvk{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
				if schemas[id] != nil {
					r.kinds[id], r.schemas[id] = acceptor(t, v), v.Schema.OpenAPIV3Schema
				}
			}
		}
		if len(r.kinds) > 0 {
			out = append(out, r)
		}
	}
	if len(out) < 4 {
		t.Fatalf("the corpus has only %d releases of Crossplane", len(out))
	}
	return out
}

// Every field of every release of Crossplane is known, so that no package has a warning about one.
func TestObjectSchemasKnowTheFieldsOfTheReleasesOfCrossplane(t *testing.T) {
	for _, r := range releases(t) {
		for id, props := range r.schemas {
			s := mappingOf("", fields{"spec": schemas[id].spec})
			for _, field := range unknownProperties(s, "spec", props.Properties["spec"]) {
				t.Errorf("%s of %s: %s is unknown", id.Kind, r.name, field)
			}
		}
	}
}

// unknownProperties returns the properties of a CRD that a schema of this package does not have.
func unknownProperties(root *schema, path string, props apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	var walk func(s *schema, path string, props apiextensionsv1.JSONSchemaProps)
	walk = func(s *schema, path string, props apiextensionsv1.JSONSchemaProps) {
		if s.kind == list && props.Items != nil {
			walk(s.items, path+"[]", *props.Items.Schema)
		}
		for name, p := range props.Properties {
			switch field := s.fields[name]; {
			case field != nil:
				walk(field, path+"."+name, p)
			case s.kind == object && len(s.fields) > 0:
				out = append(out, path+"."+name)
			}
		}
	}
	walk(root.fields["spec"], path, props)
	return out
}

// acceptor returns a function that reports whether an API server with a version of a CRD
// accepts an object.
func acceptor(t *testing.T, v apiextensionsv1.CustomResourceDefinitionVersion) func(map[string]any) bool {
	t.Helper()
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		v.Schema.OpenAPIV3Schema, &props, nil,
	); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return func(object map[string]any) bool {
		defaulting.PruneNonNullableNullsWithoutDefaults(object, structural)
		defaulting.Default(object, structural)
		pruning.Prune(object, structural, true)
		if len(validation.ValidateCustomResource(nil, object, validator)) > 0 {
			return false
		}
		// Keys of lists are unique, and rules in CEL hold.
		errs := listtype.ValidateListSetsAndMaps(nil, structural, object)
		if rules != nil {
			broken, _ := rules.Validate(context.Background(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
			errs = append(errs, broken...)
		}
		return len(errs) == 0
	}
}

// corpusObjects returns the objects in the configurations of the corpus whose schema is known,
// as JSON, and one object of each kind that the configurations lack.
func corpusObjects(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	root := filepath.Join(corpus.Dir(t), "configurations")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		docs, err := xpkg.Split(text, path, xpkg.Limits{})
		if err != nil {
			return nil
		}
		for _, d := range docs {
			object, err := d.JSON()
			if err == nil && schemas[identify(object)] != nil {
				out[strings.TrimPrefix(path, root)] = object
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range exampleObjects {
		object, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = object
	}
	return out
}

func identify(object []byte) gvk {
	var typed struct{ APIVersion, Kind string }
	_ = json.Unmarshal(object, &typed)
	group, version, _ := strings.Cut(typed.APIVersion, "/")
	return gvk{Group: group, Version: version, Kind: typed.Kind}
}

var exampleObjects = map[string]string{
	"MRAP": "{apiVersion: apiextensions.crossplane.io/v1alpha1, kind: ManagedResourceActivationPolicy, metadata: {name: a}, spec: {activate: ['*.example.org']}}",
	"MRD": `{apiVersion: apiextensions.crossplane.io/v1alpha1, kind: ManagedResourceDefinition, metadata: {name: things.example.org}, spec: {group: example.org,
  names: {kind: Thing, plural: things}, scope: Cluster, state: Active, connectionDetails: [{name: a, description: b}],
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}, selectableFields: [{jsonPath: .spec.a}]}]}}`,
	"Operation": `{apiVersion: ops.crossplane.io/v1alpha1, kind: Operation, metadata: {name: a}, spec: {mode: Pipeline, retryLimit: 3,
  pipeline: [{step: a, functionRef: {name: f}, input: {apiVersion: v1, kind: K}, credentials: [{name: c, source: Secret, secretRef: {name: s, namespace: n}}],
  requirements: {requiredResources: [{requirementName: r, apiVersion: v1, kind: K, name: x}]}}]}}`,
	"CronOperation": `{apiVersion: ops.crossplane.io/v1alpha1, kind: CronOperation, metadata: {name: a}, spec: {schedule: "0 0 * * *", concurrencyPolicy: Allow,
  operationTemplate: {spec: {mode: Pipeline, pipeline: [{step: a, functionRef: {name: f}}]}}}}`,
	"WatchOperation": `{apiVersion: ops.crossplane.io/v1alpha1, kind: WatchOperation, metadata: {name: a}, spec: {watch: {apiVersion: v1, kind: Pod, matchLabels: {a: b}},
  operationTemplate: {spec: {mode: Pipeline, pipeline: [{step: a, functionRef: {name: f}}]}}}}`,
}

// accepts reports whether the checks of this package accept an object.
func accepts(t *testing.T, object []byte) bool {
	t.Helper()
	id := identify(object)
	doc := xpkg.NewDocument("", 1, 0, func() ([]byte, error) { return object, nil })
	pkg := &xpkg.Package{Objects: []xpkg.Object{{GVK: id, Name: "o", Document: doc}}}
	for _, f := range Package(pkg, Options{}) {
		if f.Code.Name == ErrInvalidPackageObject.Name {
			return false
		}
	}
	return true
}

// An object that any release of Crossplane accepts is accepted, and nearly all objects
// that no release accepts are rejected. The objects come from real packages, with a part
// of their spec removed, repeated or replaced.
func TestObjectSchemasAgreeWithTheReleasesOfCrossplane(t *testing.T) {
	all := releases(t)
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	invalid, found := 0, 0
	missed := map[string]int{}
	for name, object := range corpusObjects(t) {
		for round := range rounds {
			r := rand.New(rand.NewPCG(uint64(round), uint64(len(name))))
			var value map[string]any
			if err := kjson.UnmarshalCaseSensitivePreserveInts(object, &value); err != nil {
				t.Fatal(err)
			}
			change := "unchanged"
			if spec, ok := value["spec"].(map[string]any); ok && round == 1 {
				change = "without spec"
				delete(value, "spec")
			} else if ok && round > 0 {
				change = mutate(r, "spec", spec, func(v any) { value["spec"] = v })
			}
			changed, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			id := identify(changed)
			upstream := ""
			for _, rel := range all {
				if accept := rel.kinds[id]; accept != nil && !byWebhook[change] && accept(runtime.DeepCopyJSON(value)) {
					upstream = rel.name
				}
			}
			switch ours := accepts(t, changed); {
			case upstream != "" && !ours:
				t.Errorf("%s: %s: %s accepts it", name, change, upstream)
			case upstream == "":
				if invalid++; !ours {
					found++
				} else {
					missed[id.Kind+" "+change]++
				}
			}
		}
	}
	t.Logf("%d of %d invalid objects are rejected; not rejected: %v", found, invalid, missed)
	if invalid == 0 || float64(found) < 0.97*float64(invalid) {
		t.Errorf("only %d of %d invalid objects are rejected", found, invalid)
	}
}

// byWebhook lists the changes of Compositions that releases before 2.0 reject in a webhook
// instead of the CRD.
var byWebhook = map[string]bool{
	"without spec.pipeline": true, "twice spec.pipeline": true, "spec.pipeline replaced": true,
}

// mutate changes one part of a value and describes the change.
func mutate(r *rand.Rand, path string, value any, set func(any)) string {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 && r.IntN(10) > 0 {
			names := slices.Sorted(maps.Keys(v))
			name := names[r.IntN(len(names))]
			if name != "openAPIV3Schema" && name != "input" && name != "base" {
				if r.IntN(6) == 0 {
					delete(v, name)
					return "without " + path + "." + name
				}
				return mutate(r, path+"."+name, v[name], func(x any) { v[name] = x })
			}
		}
	case []any:
		if len(v) > 0 && r.IntN(10) > 0 {
			if r.IntN(8) == 0 {
				set(append(v, v[0]))
				return "twice " + path
			}
			i := r.IntN(len(v))
			return mutate(r, path+"[]", v[i], func(x any) { v[i] = x })
		}
	}
	other := []any{"other", int64(7), true, map[string]any{}, []any{}, 1.5}[r.IntN(6)]
	set(other)
	return path + " replaced"
}

// Every object of the corpus that a release accepts is accepted, and so is every webhook
// configuration.
func TestWebhookConfigurationsOfTheCorpusAreValid(t *testing.T) {
	n := 0
	err := filepath.WalkDir(filepath.Join(corpus.Dir(t), "providers"),
		func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" || !strings.Contains(path, "webhook") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			docs, err := xpkg.Split(text, path, xpkg.Limits{})
			if err != nil {
				return nil
			}
			for _, d := range docs {
				object, err := d.JSON()
				if id := identify(object); err == nil && id.Group == kinds.GroupAdmission {
					n++
					if !accepts(t, object) {
						t.Errorf("%s is rejected", path)
					}
				}
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Error("the corpus has no webhook configuration")
	}
}
