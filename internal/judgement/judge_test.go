package judgement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/judgement"
)

// crd returns the JSON of a CRD with a version v1, whose schema has properties. Root are further keywords of the schema,
// and more are further fields of the version.
func crd(t *testing.T, properties, root, more string) []byte {
	t.Helper()
	if root != "" {
		root = ", " + root
	}
	if more != "" {
		more = ", " + more
	}
	return toJSON(t, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.org},
spec: {group: example.org, scope: Cluster, names: {kind: Thing, plural: things}, versions: [
{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {%s}%s}}%s}]}}`,
		properties, root, more))
}

func toJSON(t *testing.T, text string) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// object returns the JSON of a custom resource with some fields.
func object(t *testing.T, fields string) []byte {
	t.Helper()
	return toJSON(t, "{apiVersion: example.org/v1, kind: Thing, metadata: {name: a, uid: u}, "+fields+"}")
}

// judged returns the findings of an object, one a line.
func judged(t *testing.T, j *judgement.Judge, raw []byte) string {
	t.Helper()
	found, err := j.Object(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		text := f.Rule + ": " + f.String()
		if f.Tolerated {
			text = "tolerated " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

// Each change of a schema that can break an object breaks those that use what changed, and no others. Values that an
// update may keep are tolerated.
func TestChangesBreakTheObjectsThatUseThem(t *testing.T) {
	for name, tc := range map[string]struct {
		// from and to are the properties of the schema, and fromRoot and toRoot its other keywords.
		from, to, fromRoot, toRoot string
		// fromMore and toMore are further fields of the version.
		fromMore, toMore string
		// breaks is an object, and want what is found in it. Holds is an object in which nothing is found.
		breaks, want, holds string
	}{
		"a field is removed": {
			from: "spec: {type: object, properties: {a: {type: string}, b: {type: string}}}",
			to:   "spec: {type: object, properties: {b: {type: string}}}", breaks: "spec: {a: x, b: x}",
			want: "FieldRemoved: .spec.a is removed and has a value", holds: "spec: {b: x}",
		},
		"a field with fields is removed": {
			from: "spec: {type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}",
			to:   "spec: {type: object}", breaks: "spec: {a: {b: x}}",
			want: "FieldRemoved: .spec.a is removed and has a value", holds: "spec: {}",
		},
		"a field of the items of a list in a map is removed": {
			from:   "m: {type: object, additionalProperties: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}}",
			to:     "m: {type: object, additionalProperties: {type: array, items: {type: object, properties: {b: {type: string}}}}}",
			breaks: "m: {k.1: [{b: x}, {a: x}], k.2: [{a: x}]}", want: "FieldRemoved: .m[*][*].a is removed and has a value",
			holds: "m: {k: [{b: x}]}",
		},
		"a field of any values is described": {
			from: "spec: {type: object, x-kubernetes-preserve-unknown-fields: true}",
			to:   "spec: {type: object, properties: {a: {type: string}}}", breaks: "spec: {a: x, b: x}",
			want: "UnknownFieldsPruned: .spec has fields that the schema does not describe and drops", holds: "spec: {a: x}",
		},
		"a map becomes an object": {
			from: "spec: {type: object, additionalProperties: {type: string}}",
			to:   "spec: {type: object, properties: {a: {type: string}}}", breaks: "spec: {a: x, b: x}",
			want: "TypeChanged: .spec has values that its new type drops", holds: "spec: {a: x}",
		},
		"an object becomes a string": {
			from: "spec: {type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}",
			to:   "spec: {type: object, properties: {a: {type: string}}}", breaks: "spec: {a: {b: x}}",
			want: "TypeChanged: .spec.a has values that its new type drops", holds: "spec: {}",
		},
		"a number becomes a string": {
			from: "spec: {type: object, properties: {a: {type: integer}}}",
			to:   "spec: {type: object, properties: {a: {type: string}}}", breaks: "spec: {a: 1}",
			want:  `tolerated TypeChanged: .spec.a is rejected: must be of type string: "integer"`,
			holds: "spec: {}",
		},
		"values of a map get a type": {
			from:   "spec: {type: object, additionalProperties: {x-kubernetes-preserve-unknown-fields: true}}",
			to:     "spec: {type: object, additionalProperties: {type: string}}",
			breaks: "spec: {a: {b: x}}", want: "TypeChanged: .spec[*] has values that its new type drops",
			holds: "spec: {a: x}",
		},
		"null is forbidden": {
			from: "spec: {type: object, properties: {a: {type: string, nullable: true}}}",
			to:   "spec: {type: object, properties: {a: {type: string}}}", breaks: "spec: {a: null}",
			want: "ConstraintTightened: .spec.a is null, which is dropped", holds: "spec: {a: x}",
		},
		"null is forbidden in a list": {
			from:   "l: {type: array, items: {type: string, nullable: true}}",
			to:     "l: {type: array, items: {type: string}}",
			breaks: "l: [null]", want: `tolerated ConstraintTightened: .l[*] is rejected: must be of type string: "null"`,
			holds: "l: [x]",
		},
		"null is replaced by a default": {
			from: "spec: {type: object, properties: {a: {type: string, nullable: true, default: x}, b: {type: string}}}",
			to:   "spec: {type: object, properties: {a: {type: string, default: x}}}", breaks: "spec: {a: null, b: x}",
			want: "FieldRemoved: .spec.b is removed and has a value", holds: "spec: {a: null}",
		},
		"a field with its default is removed": {
			from: "spec: {type: object, properties: {a: {type: string, default: x}, b: {type: integer, default: 3}, " +
				"c: {type: object, default: {}, properties: {d: {type: boolean, default: true}, e: {type: string}}}}}",
			to: "spec: {type: object}", breaks: "spec: {a: x, b: 3, c: {d: true, e: x}}",
			want: "FieldRemoved: .spec.c is removed and has a value", holds: "spec: {a: x, b: 3, c: {d: true}}",
		},
		"a field with another value than its default is removed": {
			from: "spec: {type: object, properties: {a: {type: string, default: x}}}", to: "spec: {type: object}",
			breaks: "spec: {a: y}", want: "FieldRemoved: .spec.a is removed and has a value", holds: "spec: {}",
		},
		"a field of the status is removed": {
			from: "spec: {type: object, properties: {a: {type: string}}}, status: {type: object, properties: {b: {type: string}}}",
			to:   "spec: {type: object}, status: {type: object}", fromMore: "subresources: {status: {}}",
			breaks: "spec: {a: x}, status: {b: x}", want: "FieldRemoved: .spec.a is removed and has a value", holds: "status: {b: x}",
		},
		"a field of a status that is no subresource is removed": {
			from: "status: {type: object, properties: {b: {type: string}}}", to: "status: {type: object}",
			breaks: "status: {b: x}", want: "FieldRemoved: .status.b is removed and has a value", holds: "status: {}",
		},
		"a required field": {
			from: "spec: {type: object, properties: {a: {type: string}}}", to: "spec: {type: object, properties: {a: {type: string}}}",
			toRoot: "required: [spec]", breaks: "other: x", want: "RequiredAdded: .spec is required and missing", holds: "spec: {}",
		},
		"a required field below": {
			from: "spec: {type: object, properties: {a: {type: string}}}",
			to:   "spec: {type: object, properties: {a: {type: string}}, required: [a]}", breaks: "spec: {}",
			want: "tolerated RequiredAdded: .spec.a is required and missing", holds: "spec: {a: x}",
		},
		"a required field with a default": {
			from: "spec: {type: object, properties: {a: {type: string}, b: {type: string}}}",
			to:   "spec: {type: object, properties: {a: {type: string, default: x}}, required: [a]}", breaks: "spec: {b: x}",
			want: "FieldRemoved: .spec.b is removed and has a value", holds: "spec: {}",
		},
		"a value of an enum is removed": {
			from: "e: {type: string, enum: [a, b]}", to: "e: {type: string, enum: [a]}", breaks: "e: b",
			want: "tolerated EnumValuesRemoved: .e has a value that is not allowed", holds: "e: a",
		},
		"an enum is added below an alternative of the object": {
			from: "e: {type: string}", to: "e: {type: string}", toRoot: "anyOf: [{properties: {e: {enum: [a]}}}]", breaks: "e: b",
			want:  "ConstraintChanged: the object is rejected: \"\" must validate at least one schema (anyOf)\nConstraintChanged: .e has a value that is not allowed",
			holds: "e: a",
		},
		"a pattern": {
			from: "s: {type: string}", to: "s: {type: string, pattern: '^a$'}", breaks: "s: b",
			want: "tolerated ConstraintTightened: .s is rejected: should match '^a$'", holds: "s: a",
		},
		"another pattern": {
			from: "s: {type: string, pattern: '^[ab]$'}", to: "s: {type: string, pattern: '^a$'}", breaks: "s: b",
			want: "tolerated ConstraintChanged: .s is rejected: should match '^a$'", holds: "s: a",
		},
		"a maximum": {
			from: "num: {type: integer}", to: "num: {type: integer, maximum: 3}", breaks: "num: 4",
			want: "tolerated ConstraintTightened: .num is rejected: should be less than or equal to 3", holds: "num: 3",
		},
		"a maximum number of fields of the object": {
			from: "a: {type: string}, b: {type: string}", to: "a: {type: string}, b: {type: string}", toRoot: "maxProperties: 4",
			breaks: "a: x, b: x",
			want:   "ConstraintTightened: the object is rejected: must have at most 4 items", holds: "a: x",
		},
		"a default fills the object": {
			from: "a: {type: string}", to: "a: {type: string}, b: {type: string, default: x}",
			fromRoot: "maxProperties: 5", toRoot: "maxProperties: 5", breaks: "a: x, other: x",
			want: "Rejected: the object is rejected: must have at most 5 items", holds: "other: x",
		},
		"a format": {
			from: "s: {type: string}", to: "s: {type: string, format: date}", breaks: "s: b",
			want: `tolerated ConstraintTightened: .s is rejected: must be of type date: "b"`, holds: "s: '2026-01-02'",
		},
		"a set": {
			from: "l: {type: array, items: {type: string}}", to: "l: {type: array, items: {type: string}, x-kubernetes-list-type: set}",
			breaks: "l: [a, a]", want: "tolerated MergeChanged: .l[*] has equal items", holds: "l: [a, b]",
		},
		"a list with keys": {
			from:   "l: {type: array, items: {type: object, properties: {k: {type: string}}}}",
			to:     "l: {type: array, items: {type: object, properties: {k: {type: string}}, required: [k]}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]}",
			breaks: "l: [{k: a}, {k: a}]", want: "tolerated MergeChanged: .l[*] has equal items", holds: "l: [{k: a}, {k: b}]",
		},
		"other keys": {
			from:   "l: {type: array, items: {type: object, properties: {k: {type: string}, num: {type: string}}, required: [k, num]}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, num]}",
			to:     "l: {type: array, items: {type: object, properties: {k: {type: string}, num: {type: string}}, required: [k, num]}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]}",
			breaks: "l: [{k: a, num: a}, {k: a, num: b}]", want: "tolerated MergeChanged: .l[*] has equal items",
			holds: "l: [{k: a, num: a}, {k: b, num: a}]",
		},
		"a rule of a field": {
			from: "num: {type: integer}", to: "num: {type: integer, x-kubernetes-validations: [{rule: self > 1, message: too small}]}",
			breaks: "num: 1", want: "tolerated RuleAdded: .num is rejected: too small", holds: "num: 2",
		},
		"a rule of the object": {
			from: "num: {type: integer}", to: "num: {type: integer}",
			toRoot: "x-kubernetes-validations: [{rule: '!has(self.num) || self.num > 1', message: too small}]",
			breaks: "num: 1", want: "RuleAdded: the object is rejected: too small", holds: "num: 2",
		},
		"a rule that fails to evaluate": {
			from: "m: {type: object, additionalProperties: {type: string}}", to: "m: {type: object, additionalProperties: {type: string}, x-kubernetes-validations: [{rule: 'self.k == \"x\"'}]}",
			breaks: "m: {l: x}", want: "RuleAdded: .m is rejected: no such key: k evaluating rule: self.k == \"x\"",
			holds: "m: {k: x}",
		},
		"a rule for changes": {
			from: "num: {type: integer}", to: "num: {type: integer, x-kubernetes-validations: [{rule: self > oldSelf - 2 + self, message: grew}]}",
			breaks: "num: 3", want: "RuleAdded: .num is rejected: grew", holds: "num: 1",
		},
		"a rule for changes that also applies to new objects": {
			from: "num: {type: integer, x-kubernetes-validations: [{rule: 'oldSelf == self'}]}", to: "num: {type: integer, x-kubernetes-validations: [{rule: 'oldSelf.hasValue() && self < 3', optionalOldSelf: true, message: once}]}",
			breaks: "num: 3", want: "RuleAdded: .num is rejected: once", holds: "other: x",
		},
		"a rule sees defaults": {
			from: "a: {type: integer}", to: "a: {type: integer}, b: {type: integer, default: 5}",
			toRoot: "x-kubernetes-validations: [{rule: '!has(self.a) || self.a > self.b', message: small}]", breaks: "a: 3",
			want: "RuleAdded: the object is rejected: small", holds: "a: 6",
		},
		"what was rejected before": {
			from: "a: {type: string}, num: {type: integer}", to: "num: {type: integer}", fromRoot: "required: [spec]", toRoot: "required: [spec]",
			breaks: "a: x", want: "FieldRemoved: .a is removed and has a value", holds: "num: 1",
		},
		"what new objects could not have before": {
			from: "a: {type: string}, num: {type: integer, maximum: 3}", to: "num: {type: integer, maximum: 3}",
			breaks: "a: x", want: "FieldRemoved: .a is removed and has a value", holds: "num: 5",
		},
		"an embedded object": {
			from:   "e: {type: object, properties: {kind: {type: string}, apiVersion: {type: string}}}",
			to:     "e: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}",
			breaks: "e: {apiVersion: v1}", want: "TypeChanged: .e.kind is required and missing",
			holds: "e: {kind: A, apiVersion: v1}",
		},
		"the number of replicas": {
			from: "num: {type: integer}", to: "num: {type: integer}",
			toMore: "subresources: {scale: {specReplicasPath: .num, statusReplicasPath: .status.num}}", breaks: "num: -1",
			want: "SubresourceAdded: .num is rejected: should be a non-negative integer", holds: "num: 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			const other = ", other: {type: string}"
			j, err := judgement.New(crd(t, tc.from+other, tc.fromRoot, tc.fromMore), crd(t, tc.to+other, tc.toRoot, tc.toMore))
			if err != nil || j == nil {
				t.Fatal(j, err)
			}
			if got := judged(t, j, object(t, tc.breaks)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if got := judged(t, j, object(t, tc.holds)); got != "" {
				t.Errorf("an object that holds: %s", got)
			}
		})
	}
}

// Changes that affect no object need no Judge, so no object is read.
func TestSafeChangesNeedNoJudge(t *testing.T) {
	const base = "spec: {type: object, properties: {a: {type: string, enum: [x], maxLength: 3}}, required: [a]}"
	for name, tc := range map[string]struct {
		to, root, more string
		isJudged       bool
	}{
		"nothing":             {to: base},
		"a description":       {to: strings.Replace(base, "type: string", "type: string, description: new", 1)},
		"a field":             {to: base + ", b: {type: object, properties: {c: {type: string}}}"},
		"a field, default":    {to: base + ", b: {type: object, properties: {c: {type: string, default: x}}}", isJudged: true},
		"a value of an enum":  {to: strings.Replace(base, "[x]", "[x, y]", 1)},
		"a looser limit":      {to: strings.Replace(base, "maxLength: 3", "maxLength: 4", 1)},
		"a stricter limit":    {to: strings.Replace(base, "maxLength: 3", "maxLength: 2", 1), isJudged: true},
		"an optional field":   {to: strings.Replace(base, ", required: [a]", "", 1)},
		"a column":            {to: base, more: "additionalPrinterColumns: [{name: A, type: string, jsonPath: .spec.a}]"},
		"the subresource":     {to: base, more: "subresources: {status: {}}"},
		"the scale":           {to: base, more: "subresources: {scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}", isJudged: true},
		"a rule":              {to: base, root: "x-kubernetes-validations: [{rule: has(self.spec)}]", isJudged: true},
		"deprecated":          {to: base, more: "deprecated: true"},
		"a type that accepts": {to: strings.Replace(base, "{type: string, enum: [x], maxLength: 3}", "{x-kubernetes-int-or-string: true}", 1), isJudged: true},
	} {
		j, err := judgement.New(crd(t, base, "", ""), crd(t, tc.to, tc.root, tc.more))
		if err != nil || (j != nil) != tc.isJudged {
			t.Errorf("%s: a judge: %t, %v", name, j != nil, err)
		}
	}
}

// versions returns the JSON of a CRD with versions in the form name, served and storage as letters, and the properties
// of their schemas.
func versions(t *testing.T, conversion string, all ...string) []byte {
	t.Helper()
	var out []string
	for v := range slices.Chunk(all, 2) {
		name, flags, _ := strings.Cut(v[0], " ")
		out = append(out, fmt.Sprintf("{name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {%s}}}}",
			name, strings.Contains(flags, "served"), strings.Contains(flags, "stored"), v[1]))
	}
	return toJSON(t, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.org},
spec: {group: example.org, scope: Cluster, names: {kind: Thing, plural: things}, conversion: %s, versions: [%s]}}`,
		conversion, strings.Join(out, ", ")))
}

// Objects are read in a version that both CRDs serve, and judged by every version that processes them.
func TestVersionsOfAChange(t *testing.T) {
	const (
		none    = "{strategy: None}"
		webhook = "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b}}}}"
		ab, b   = "a: {type: string}, b: {type: string}", "b: {type: string}"
	)
	for name, tc := range map[string]struct {
		live, future []byte
		// version is empty if there is no judge.
		version, want string
	}{
		"the stored version": {
			live:    versions(t, none, "v1alpha1 served", ab, "v1 served stored", ab),
			future:  versions(t, none, "v1alpha1 served", ab, "v1 served stored", b),
			version: "v1", want: "FieldRemoved: .a is removed and has a value",
		},
		"another version changes": {
			live:   versions(t, none, "v1alpha1 served", ab, "v1 served stored", ab),
			future: versions(t, none, "v1alpha1 served", b, "v1 served stored", ab),
		},
		"the storage moves to a version with the field": {
			live:   versions(t, none, "v1alpha1 served stored", ab, "v1 served", ab),
			future: versions(t, none, "v1alpha1 served", ab, "v1 served stored", ab),
		},
		"the storage moves to a version without the field": {
			live:    versions(t, none, "v1alpha1 served stored", ab, "v1 served", b),
			future:  versions(t, none, "v1alpha1 served", ab, "v1 served stored", b),
			version: "v1alpha1", want: "StoredFieldDropped: .a has a value that the new storage version drops",
		},
		"a webhook moves the field": {
			live:   versions(t, webhook, "v1alpha1 served stored", ab, "v1 served", b),
			future: versions(t, webhook, "v1alpha1 served", ab, "v1 served stored", b),
		},
		"no common version": {
			live:    versions(t, none, "v1alpha1 served stored", ab),
			future:  versions(t, none, "v1alpha1", ab, "v1 served stored", b),
			version: "v1alpha1", want: "StoredFieldDropped: .a has a value that the new storage version drops",
		},
		"no common version with a webhook": {
			live:   versions(t, webhook, "v1alpha1 served stored", ab),
			future: versions(t, webhook, "v1alpha1", ab, "v1 served stored", b),
		},
		"the stored version is not served": {
			live:    versions(t, none, "v1alpha1 stored", ab, "v1 served", ab),
			future:  versions(t, none, "v1alpha1 stored", b, "v1 served", ab),
			version: "v1", want: "FieldRemoved: .a is removed and has a value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := judgement.New(tc.live, tc.future)
			if err != nil {
				t.Fatal(err)
			}
			if j == nil {
				if tc.version != "" {
					t.Error("there is no judge")
				}
				return
			}
			if got := j.Version(); got != tc.version {
				t.Fatalf("the version is %q, want %q", got, tc.version)
			}
			raw := toJSON(t, "{apiVersion: example.org/"+tc.version+", kind: Thing, metadata: {name: a}, a: x, b: x}")
			if got := judged(t, j, raw); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			raw = toJSON(t, "{apiVersion: example.org/"+tc.version+", kind: Thing, metadata: {name: a}, b: x}")
			if got := judged(t, j, raw); got != "" {
				t.Errorf("an object without the field: %s", got)
			}
		})
	}
}
