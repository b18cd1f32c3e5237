package crdvalidation_test

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// Lint and the API server agree about unusual schemas: both refuse one, or both accept it, such as equal values of an
// enum and negative limits.
func TestUnusualSchemasAgreeWithTheAPIServer(t *testing.T) {
	e := env.New(t)
	for i, field := range []string{
		"{type: string, enum: [a, a]}", "{type: string, enum: []}", "{type: string, enum: [1]}",
		"{type: string, enum: [null]}", "{type: string, enum: [a], default: b}",
		"{type: string, maxLength: -1}", "{type: string, minLength: -1}", "{type: string, minLength: 2, maxLength: 1}",
		"{type: array, items: {type: string}, maxItems: -1}", "{type: array, items: {type: string}, minItems: -1}",
		"{type: array, items: {type: string}, minItems: 2, maxItems: 1}",
		"{type: object, maxProperties: -1}", "{type: object, minProperties: -1}",
		"{type: object, minProperties: 2, maxProperties: 1}",
		"{type: integer, multipleOf: 0}", "{type: integer, multipleOf: -1}", "{type: integer, minimum: 2, maximum: 1}",
		"{type: integer, minimum: 1, maximum: 1, exclusiveMinimum: true}",
		"{type: string, pattern: '['}", "{type: string, pattern: '(?=a)'}", "{type: string, pattern: ''}",
		"{type: string, format: unknown}", "{type: integer, pattern: a}", "{type: string, minimum: 1}",
		"{type: object, required: [a, a], properties: {a: {type: string}}}", "{type: object, required: [absent]}",
		"{type: object, required: [''], properties: {a: {type: string}}}",
		"{type: array, items: {type: string}, uniqueItems: true}",
		"{type: array, x-kubernetes-list-type: set, items: {type: object}}",
		"{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, a], items: {type: object, required: [a], properties: {a: {type: string}}}}",
		"{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [], items: {type: object, properties: {a: {type: string}}}}",
		"{type: integer, format: int32, default: 3000000000}", "{type: string, default: null}",
		"{type: string, nullable: true, default: null}",
		"{type: string, x-kubernetes-validations: [{rule: 'self.size() > 0'}, {rule: 'self.size() > 0'}]}",
		"{type: string, x-kubernetes-validations: [{rule: ''}]}",
		"{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}",
		"{type: string, externalDocs: {url: ''}}", "{type: string, example: 1}",
	} {
		t.Run(field, func(t *testing.T) {
			name := fmt.Sprintf("things.odd%d.example.org", i)
			text := fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s}, spec: {group: odd%d.example.org, scope: Cluster,
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {f: %s}}}}}}]}}`, name, i, field)
			json, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			problems := crdvalidation.ValidateCRD(json)
			o := &unstructured.Unstructured{}
			if err := o.UnmarshalJSON(json); err != nil {
				t.Fatal(err)
			}
			err = e.Client.Create(t.Context(), o)
			if err == nil {
				t.Cleanup(func() { e.CleanUp(t, o) })
			} else if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Fatal(err)
			}
			if (err != nil) != (len(problems) > 0) {
				t.Errorf("the API server responds with %v, and lint finds %v", err, problems)
			}
		})
	}
}
