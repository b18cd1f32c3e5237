package judgement_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/judgement"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// server has one kind, whose schema is replaced.
type server struct {
	*env.Env
	stage int
}

// definition returns the CRD of a schema. Its enum of the field stage shows which schema the API server serves.
func definition(schema node, stage int) []byte {
	schema = clone(schema).(node)
	propertiesOf(schema)["stage"] = node{"type": "string", "enum": []any{fmt.Sprint(stage)}}
	raw, err := json.Marshal(node{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": node{"name": "things.judged.example.org"},
		"spec": node{
			"group": "judged.example.org", "scope": "Cluster",
			"names": node{"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
			"versions": []any{node{
				"name": "v1", "served": true, "storage": true, "schema": node{"openAPIV3Schema": schema},
			}},
		},
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// thing returns an object with some content.
func thing(name string, content node) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: clone(content).(node)}
	o.SetAPIVersion("judged.example.org/v1")
	o.SetKind("Thing")
	o.SetName(name)
	raw, err := o.MarshalJSON()
	if err == nil {
		err = o.UnmarshalJSON(raw)
	}
	if err != nil {
		panic(err)
	}
	return o
}

// apply replaces the schema, waits until the API server serves it, and returns the CRD. It skips a schema that the API
// server refuses.
func (s *server) apply(t *testing.T, r *rapid.T, schema node) []byte {
	s.stage++
	crd := definition(schema, s.stage)
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(crd); err != nil {
		t.Fatal(err)
	}
	err := s.Client.Patch(
		t.Context(), o, client.RawPatch(types.ApplyPatchType, crd), client.ForceOwnership, client.FieldOwner("test"),
	)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		r.Logf("%v", err)
		r.Skip("refused")
	}
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, env.Limit, "the schema to be served", func() (string, bool) {
		err := s.Client.Create(t.Context(), thing("probe", node{"stage": fmt.Sprint(s.stage)}), client.DryRunAll)
		if err == nil || apierrors.IsInvalid(err) && !strings.Contains(err.Error(), "stage: Unsupported value") {
			return "", true
		}
		return err.Error(), false
	})
	return crd
}

// get returns the object as the API server reads it.
func (s *server) get(t *testing.T, name string) *unstructured.Unstructured {
	o := thing(name, node{})
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// touch changes a label of an object, and reports whether the API server rejects that.
func (s *server) touch(t *testing.T, name, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{"touched":%q}}}`, value)
	err := s.Client.Patch(t.Context(), thing(name, node{}), client.RawPatch(types.MergePatchType, []byte(patch)))
	if err != nil && !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
	return err
}

// createError returns the error of the API server for a new object with the same content.
func (s *server) createError(t *testing.T, o *unstructured.Unstructured) error {
	content := o.DeepCopy().Object
	delete(content, "metadata")
	err := s.Client.Create(t.Context(), thing("copy", content), client.DryRunAll)
	if err != nil && !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
	return err
}

// hasLost reports whether a value is missing in the second version of an object.
func hasLost(before, after any) bool {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			return true
		}
		for name, value := range b {
			if now, kept := a[name]; !kept || hasLost(value, now) {
				return true
			}
		}
		return false
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			return true
		}
		for i := range b {
			if hasLost(b[i], a[i]) {
				return true
			}
		}
		return false
	case nil:
		return false
	}
	return !reflect.DeepEqual(before, after)
}

// withoutDefaults removes the values of an object that are gone later and are defaults of a schema: the API server had
// added them, and they are not lost.
func withoutDefaults(schema, before, after any) {
	s, _ := schema.(node)
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		for name, value := range b {
			child := s["additionalProperties"]
			if properties, _ := s["properties"].(node); properties[name] != nil {
				child = properties[name]
			}
			now, kept := a[name]
			if kept {
				withoutDefaults(child, value, now)
			} else if c, _ := child.(node); c["default"] != nil && fmt.Sprint(c["default"]) == fmt.Sprint(value) {
				delete(b, name)
			}
		}
	case []any:
		a, _ := after.([]any)
		for i := range min(len(a), len(b)) {
			withoutDefaults(s["items"], b[i], a[i])
		}
	}
}

// The judge and the API server agree about random objects that were created under one random schema and stay under two
// others: which of them lose values with the last one, for which of them a change of a label is rejected, and which
// contents new objects may not have.
func TestJudgeAgreesWithTheAPIServer(t *testing.T) {
	s := &server{Env: env.New(t)}
	var objects, lost, rejected, tolerated, stayed, former, older int
	rapid.Check(t, func(r *rapid.T) {
		g := generator{r}
		live := g.root()
		first, isOlder := live, g.oneIn(3)
		if isOlder {
			first = g.changed(live)
		}
		future := g.changed(live)
		crd := s.apply(t, r, first)
		version, err := versionOf(crd)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range 12 {
			name := fmt.Sprintf("thing-%d", i)
			o := thing(name, g.value(withoutNull(first)).(node))
			content := o.DeepCopy()
			version.Read(content.Object)
			if len(version.ValidateCreate(t.Context(), content.Object)) > 0 {
				continue
			}
			if err := s.Client.Create(t.Context(), o); err != nil {
				r.Fatalf("an object that is valid: %v", err)
			}
			names = append(names, name)
		}
		defer func() {
			for _, name := range names {
				s.Delete(t, thing(name, node{}))
			}
		}()
		liveCRD := s.apply(t, r, live)
		before, liveErrors, liveCreateErrors := map[string]*unstructured.Unstructured{}, map[string]error{}, map[string]error{}
		for _, name := range names {
			liveErrors[name] = s.touch(t, name, "live")
			before[name] = s.get(t, name)
			liveCreateErrors[name] = s.createError(t, before[name])
		}
		futureCRD := s.apply(t, r, future)
		judge, err := judgement.New(liveCRD, futureCRD)
		if err != nil || judge == nil {
			r.Fatal(judge, err)
		}
		for _, name := range names {
			raw, err := before[name].MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			found, err := judge.Object(t.Context(), raw)
			if err != nil {
				r.Fatal(err)
			}
			verdict := verdictOf(found)
			after := s.get(t, name)
			was, is := before[name].DeepCopy().Object, after.DeepCopy().Object
			delete(was, "metadata")
			delete(is, "metadata")
			futureError := s.touch(t, name, "future")
			objects++
			describe := func() string {
				return fmt.Sprintf(
					"\nlive   %s\nfuture %s\nobject %s\nafter  %v\nfound %+v\nrejected %v", liveCRD, futureCRD, raw, is, found, futureError,
				)
			}
			// An object of another schema that the live CRD rejects is not stored as it is read: without defaults that were
			// added, and with fields that were removed.
			if liveErrors[name] != nil && isOlder {
				older++
				continue
			}
			withoutDefaults(live, was, is)
			if hasLost(was, is) != verdict.loses {
				r.Fatalf("the API server drops values: %t, the judge finds that: %t%s", hasLost(was, is), verdict.loses, describe())
			}
			switch {
			case liveErrors[name] != nil:
				former++
				if futureError == nil && verdict.isRejected {
					r.Fatalf("the judge finds a rejection%s", describe())
				}
			case (futureError != nil) != verdict.isRejected:
				r.Fatalf("the API server rejects the update: %t, the judge finds that: %t%s", futureError != nil,
					verdict.isRejected, describe())
			}
			if liveCreateErrors[name] == nil && futureError == nil && !verdict.loses {
				if err := s.createError(t, after); (err != nil) != verdict.isTolerated {
					r.Fatalf("the API server rejects a new object: %v, the judge finds that: %t%s", err, verdict.isTolerated, describe())
				}
			}
			switch {
			case verdict.loses:
				lost++
			case verdict.isRejected:
				rejected++
			case verdict.isTolerated:
				tolerated++
			default:
				stayed++
			}
		}
	})
	t.Logf("%d objects: %d lose values, %d are rejected, %d are tolerated, %d stay; %d and %d were rejected before", objects,
		lost, rejected, tolerated, stayed, former, older)
	if min(lost, rejected, tolerated, stayed, former, older) == 0 {
		t.Error("a verdict was never given")
	}
}

// verdict is a summary of findings.
type verdict struct{ loses, isRejected, isTolerated bool }

func verdictOf(found []judgement.Finding) (v verdict) {
	for _, f := range found {
		switch {
		case f.Tolerated:
			v.isTolerated = true
		case strings.Contains(f.Text, "drop") || strings.Contains(f.Text, "is removed"):
			v.loses = true
		default:
			v.isRejected = true
		}
	}
	return v
}

func versionOf(crd []byte) (*crdvalidation.Version, error) {
	d, err := crdvalidation.ReadCRD(crd)
	if err != nil {
		return nil, err
	}
	return crdvalidation.NewVersion(d, "v1")
}

// withoutNull returns the schema of an object that is not null.
func withoutNull(s node) node {
	s = clone(s).(node)
	delete(s, "nullable")
	return s
}
