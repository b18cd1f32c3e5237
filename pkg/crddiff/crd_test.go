package crddiff_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

// widget returns a CRD whose version v1 has the field spec.size with the given schema, as YAML in flow style.
func widget(t testing.TB, size string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return decode(t, `
group: example.org
scope: Namespaced
names: {kind: Widget, plural: widgets}
versions:
- name: v1
  served: true
  storage: true
  schema:
    openAPIV3Schema:
      type: object
      properties:
        spec: {type: object, properties: {size: `+size+`}}
`)
}

// decode returns the CRD widgets.example.org with the spec in YAML.
func decode(t testing.TB, spec string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "widgets.example.org"
	if err := yaml.UnmarshalStrict([]byte(spec), &crd.Spec); err != nil {
		t.Fatal(err)
	}
	return crd
}

// summary returns the class, type and path of each change.
func summary(changes []crddiff.Change) []string {
	out := []string{}
	for _, c := range changes {
		out = append(out, strings.TrimSpace(c.Class.String()+" "+string(c.Type)+" "+c.Path))
	}
	return out
}

// Each property check of crdify, in both directions, and further constraints. Deliberate differences: crdify reports
// every change of a default as incompatible; here it needs care, because every object stays valid. crdify reports
// changed descriptions; here they are safe.
//
// hardening: I-2
func TestFieldChangesAreClassed(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to      string
		want, reverse string
	}{
		"type":         {"{type: string}", "{type: integer}", "breaking TypeChanged", "breaking TypeChanged"},
		"type widened": {"{type: integer}", "{type: number}", "needs care TypeChanged", "breaking TypeChanged"},
		"integer or string": {
			"{type: string}", "{x-kubernetes-int-or-string: true}", "needs care TypeChanged", "breaking TypeChanged",
		},
		"default added": {
			"{type: string}", "{type: string, default: a}", "needs care DefaultAdded", "needs care DefaultRemoved",
		},
		"default changed": {
			"{type: string, default: a}", "{type: string, default: b}", "needs care DefaultChanged", "needs care DefaultChanged",
		},
		"enum added": {
			"{type: string}", "{type: string, enum: [a]}", "breaking EnumAdded", "safe EnumRemoved",
		},
		"enum value removed": {
			"{type: string, enum: [a, b]}", "{type: string, enum: [a]}", "breaking EnumValuesRemoved", "safe EnumValuesAdded",
		},
		"maximum": {
			"{type: integer}", "{type: integer, maximum: 3}", "breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"maximum lower": {
			"{type: integer, maximum: 4}", "{type: integer, maximum: 3}", "breaking ConstraintTightened",
			"safe ConstraintLoosened",
		},
		"minimum": {
			"{type: integer, minimum: 1}", "{type: integer, minimum: 2}", "breaking ConstraintTightened",
			"safe ConstraintLoosened",
		},
		"maxLength": {
			"{type: string, maxLength: 5}", "{type: string, maxLength: 4}", "breaking ConstraintTightened",
			"safe ConstraintLoosened",
		},
		"minLength": {
			"{type: string}", "{type: string, minLength: 4}", "breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"maxItems": {
			"{type: array, items: {type: string}}", "{type: array, items: {type: string}, maxItems: 1}",
			"breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"minItems": {
			"{type: array, items: {type: string}}", "{type: array, items: {type: string}, minItems: 1}",
			"breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"maxProperties": {
			"{type: object}", "{type: object, maxProperties: 1}", "breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"minProperties": {
			"{type: object}", "{type: object, minProperties: 1}", "breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"exclusiveMaximum": {
			"{type: integer, maximum: 3}", "{type: integer, maximum: 3, exclusiveMaximum: true}", "breaking ConstraintTightened",
			"safe ConstraintLoosened",
		},
		"exclusiveMinimum": {
			"{type: integer, minimum: 3}", "{type: integer, minimum: 3, exclusiveMinimum: true}", "breaking ConstraintTightened",
			"safe ConstraintLoosened",
		},
		"multipleOf": {
			"{type: integer, multipleOf: 2}", "{type: integer, multipleOf: 4}", "breaking ConstraintTightened",
			"safe ConstraintLoosened",
		},
		"multipleOf other": {
			"{type: integer, multipleOf: 2}", "{type: integer, multipleOf: 3}", "breaking ConstraintTightened",
			"breaking ConstraintTightened",
		},
		"uniqueItems": {
			"{type: array, items: {type: string}}", "{type: array, items: {type: string}, uniqueItems: true}",
			"breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"nullable": {
			"{type: string, nullable: true}", "{type: string}", "breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"pattern added": {
			"{type: string}", "{type: string, pattern: '^a'}", "breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"pattern changed": {
			"{type: string, pattern: '^b'}", "{type: string, pattern: '^a'}", "breaking ConstraintChanged",
			"breaking ConstraintChanged",
		},
		"format": {
			"{type: string}", "{type: string, format: date-time}", "breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"unknown format": {
			"{type: string}", "{type: string, format: moon}", "safe ConstraintChanged", "safe ConstraintLoosened",
		},
		"rule": {
			"{type: integer}", "{type: integer, x-kubernetes-validations: [{rule: self > 1}]}", "breaking RuleAdded",
			"safe RuleRemoved",
		},
		"immutable": {
			"{type: integer}", "{type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}", "breaking RuleAdded",
			"safe RuleRemoved",
		},
		"message of a rule": {
			"{type: integer, x-kubernetes-validations: [{rule: self > 1, message: a}]}",
			"{type: integer, x-kubernetes-validations: [{rule: self > 1, message: b}]}", "safe RuleChanged", "safe RuleChanged",
		},
		"reason of a rule": {
			"{type: integer, x-kubernetes-validations: [{rule: self > 1}]}",
			"{type: integer, x-kubernetes-validations: [{rule: self > 1, reason: FieldValueForbidden}]}", "safe RuleChanged",
			"safe RuleChanged",
		},
		"default reason": {
			"{type: integer, x-kubernetes-validations: [{rule: self > 1}]}",
			"{type: integer, x-kubernetes-validations: [{rule: self > 1, reason: FieldValueInvalid}]}", "", "",
		},
		"path of a rule": {
			"{type: object, x-kubernetes-validations: [{rule: has(self.a)}]}",
			"{type: object, x-kubernetes-validations: [{rule: has(self.a), fieldPath: .a}]}", "safe RuleChanged",
			"safe RuleChanged",
		},
		"rule of new objects": {
			"{type: integer, x-kubernetes-validations: [{rule: oldSelf == self}]}",
			"{type: integer, x-kubernetes-validations: [{rule: oldSelf == self, optionalOldSelf: true}]}",
			"breaking RuleChanged", "safe RuleChanged",
		},
		"allOf": {
			"{type: string}", "{type: string, allOf: [{maxLength: 3}]}", "breaking ConstraintChanged", "safe ConstraintLoosened",
		},
		"anyOf": {
			"{type: string, anyOf: [{maxLength: 3}]}", "{type: string, anyOf: [{maxLength: 3}, {maxLength: 4}]}",
			"safe ConstraintLoosened", "breaking ConstraintChanged",
		},
		"oneOf": {
			"{type: string, oneOf: [{maxLength: 3}]}", "{type: string, oneOf: [{maxLength: 3}, {maxLength: 4}]}",
			"breaking ConstraintChanged", "breaking ConstraintChanged",
		},
		"not": {
			"{type: string}", "{type: string, not: {enum: [a]}}", "breaking ConstraintChanged", "safe ConstraintLoosened",
		},
		"description": {
			"{type: string}", "{type: string, description: text}", "safe DocumentationChanged", "safe DocumentationChanged",
		},
		"unknown fields": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}", "breaking UnknownFieldsPruned",
			"safe UnknownFieldsKept",
		},
		"set": {
			"{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: set}",
			"breaking MergeChanged", "needs care MergeChanged",
		},
		"atomic is default": {
			"{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: atomic}", "",
			"",
		},
		"map type": {
			"{type: object}", "{type: object, x-kubernetes-map-type: atomic}", "needs care MergeChanged",
			"needs care MergeChanged",
		},
		"equal":        {"{type: string, maxLength: 4}", "{type: string, maxLength: 4}", "", ""},
		"no minLength": {"{type: string}", "{type: string, minLength: 0}", "", ""},
		"no minItems": {
			"{type: array, items: {type: string}}", "{type: array, items: {type: string}, minItems: 0}", "", "",
		},
		"limit of nothing": {
			"{type: integer}", "{type: integer, exclusiveMaximum: true, exclusiveMinimum: true}", "", "",
		},
		"null and default": {
			"{type: string, default: a, nullable: true}", "{type: string, default: a}", "needs care ConstraintTightened",
			"needs care ConstraintLoosened",
		},
		"format with hyphens": {
			"{type: string}", "{type: string, format: hex-color}", "breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"other format": {
			"{type: string, format: ipv4}", "{type: string, format: ipv6}", "breaking ConstraintChanged",
			"breaking ConstraintChanged",
		},
		"format from unknown": {
			"{type: string, format: moon}", "{type: string, format: uri}", "breaking ConstraintChanged",
			"safe ConstraintLoosened",
		},
		"spelling of a format": {
			"{type: string, format: date-time}", "{type: string, format: datetime}", "safe ConstraintChanged",
			"safe ConstraintChanged",
		},
		"format of names": {
			"{type: string}", "{type: string, format: k8s-short-name}", "breaking ConstraintTightened",
			"safe ConstraintLoosened",
		},
		"int32": {
			"{type: integer}", "{type: integer, format: int32}", "breaking ConstraintTightened", "safe ConstraintLoosened",
		},
		"int64": {
			"{type: integer, format: int64}", "{type: integer, format: int32}", "breaking ConstraintChanged",
			"safe ConstraintLoosened",
		},
		"range of integers": {
			"{type: integer}", "{type: integer, format: int64}", "safe ConstraintChanged", "safe ConstraintLoosened",
		},
		"float": {
			"{type: number, format: double}", "{type: number, format: float}", "breaking ConstraintChanged",
			"safe ConstraintLoosened",
		},
		"format of no type": {
			"{type: string}", "{type: string, format: int32}", "safe ConstraintChanged", "safe ConstraintLoosened",
		},
		"order of keys": {
			"{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b], items: {type: object}}",
			"{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b, a], items: {type: object}}", "", "",
		},
		"granular is default": {"{type: object}", "{type: object, x-kubernetes-map-type: granular}", "", ""},
		"form of a type": {
			"{x-kubernetes-int-or-string: true}", "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}",
			"", "",
		},
		"form of a type, allOf": {
			"{x-kubernetes-int-or-string: true}",
			"{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}]}", "", "",
		},
		"form of integer or string": {
			"{type: string}", "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}",
			"needs care TypeChanged", "breaking TypeChanged",
		},
		"limited integer or string": {
			"{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}]}",
			"{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {maxLength: 3}]}",
			"breaking ConstraintChanged", "safe ConstraintLoosened",
		},
		"items of anything": {
			"{x-kubernetes-preserve-unknown-fields: true}",
			"{x-kubernetes-preserve-unknown-fields: true, items: {type: string}}", "breaking ConstraintTightened",
			"needs care ConstraintLoosened",
		},
		"values of anything": {
			"{x-kubernetes-preserve-unknown-fields: true}",
			"{x-kubernetes-preserve-unknown-fields: true, additionalProperties: {type: string}}", "breaking ConstraintTightened",
			"needs care ConstraintLoosened",
		},
		"rule in lines": {
			"{type: integer, x-kubernetes-validations: [{rule: self > 1 && self < 9}]}",
			`{type: integer, x-kubernetes-validations: [{rule: "self > 1 // positive\n  && self < 9"}]}`, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dir := range []struct{ from, to, want string }{{tc.from, tc.to, tc.want}, {tc.to, tc.from, tc.reverse}} {
				want := []string{}
				if dir.want != "" {
					want = append(want, dir.want+" .spec.size")
				}
				changes := crddiff.CRD(widget(t, dir.from), widget(t, dir.to))
				if diff := cmp.Diff(want, summary(changes)); diff != "" {
					t.Errorf("%s to %s (-want +got):\n%s", dir.from, dir.to, diff)
				}
			}
		})
	}
}

// hardening: I-2
func TestFieldsAndRequirementsAreClassed(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     []string
	}{
		"optional field added": {"{type: object}", "{type: object, properties: {a: {type: string}}}", []string{
			"safe FieldAdded .spec.size.a",
		}},
		"field removed": {"{type: object, properties: {a: {type: string}}}", "{type: object}", []string{
			"breaking FieldRemoved .spec.size.a",
		}},
		"field no longer typed": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}",
			"{type: object, x-kubernetes-preserve-unknown-fields: true}", []string{"needs care FieldRemoved .spec.size.a"},
		},
		"free field is typed": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true}",
			"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}",
			[]string{"breaking FieldAdded .spec.size.a"},
		},
		"required field added": {
			"{type: object}", "{type: object, required: [a], properties: {a: {type: string}}}",
			[]string{"breaking RequiredAdded .spec.size.a", "safe FieldAdded .spec.size.a"},
		},
		"field becomes required": {
			"{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}",
			[]string{"breaking RequiredAdded .spec.size.a"},
		},
		"required with default": {
			"{type: object}", "{type: object, required: [a], properties: {a: {type: string, default: x}}}",
			[]string{"needs care RequiredAdded .spec.size.a", "safe FieldAdded .spec.size.a"},
		},
		"default of a required field removed": {
			"{type: object, required: [a], properties: {a: {type: string, default: x}}}",
			"{type: object, required: [a], properties: {a: {type: string}}}",
			[]string{"breaking DefaultRemoved .spec.size.a"},
		},
		"default removed and required": {
			"{type: object, properties: {a: {type: string, default: x}}}",
			"{type: object, required: [a], properties: {a: {type: string}}}",
			[]string{"breaking RequiredAdded .spec.size.a", "needs care DefaultRemoved .spec.size.a"},
		},
		"default of a required field added": {
			"{type: object, required: [a], properties: {a: {type: string}}}",
			"{type: object, required: [a], properties: {a: {type: string, default: x}}}",
			[]string{"needs care DefaultAdded .spec.size.a"},
		},
		"field becomes optional": {
			"{type: object, required: [a], properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string}}}",
			[]string{"safe RequiredRemoved .spec.size.a"},
		},
		"items": {
			"{type: array, items: {type: object, properties: {a: {type: string}}}}", "{type: array, items: {type: object}}",
			[]string{"breaking FieldRemoved .spec.size[*].a"},
		},
		"values of a map": {
			"{type: object, additionalProperties: {type: string}}",
			"{type: object, additionalProperties: {type: string, maxLength: 2}}",
			[]string{"breaking ConstraintTightened .spec.size[*]"},
		},
		"map becomes a struct": {
			"{type: object, additionalProperties: {type: string}}", "{type: object, properties: {a: {type: string}}}",
			[]string{"breaking TypeChanged .spec.size"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summary(crddiff.CRD(widget(t, tc.from), widget(t, tc.to)))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

const versions = `
group: example.org
scope: Namespaced
names: {kind: Widget, plural: widgets, shortNames: [w], categories: [all]}
versions:
- {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
- name: v1
  served: true
  storage: true
  subresources: {status: {}, scale: {specReplicasPath: .spec.ready, statusReplicasPath: .status.ready}}
  selectableFields: [{jsonPath: .spec.a}]
  additionalPrinterColumns: [{name: A, type: string, jsonPath: .spec.a}]
  schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {ready: {type: integer}}}}}}
`

func TestChangesOfTheCRDAreClassed(t *testing.T) {
	for name, tc := range map[string]struct {
		replace []string
		want    []string
	}{
		"scope":      {[]string{"scope: Namespaced", "scope: Cluster"}, []string{"breaking ScopeChanged"}},
		"kind":       {[]string{"kind: Widget", "kind: Gadget"}, []string{"breaking NamesChanged"}},
		"short name": {[]string{"shortNames: [w]", "shortNames: []"}, []string{"needs care NamesChanged"}},
		"category":   {[]string{"categories: [all]", "categories: [all, more]"}, []string{"safe NamesChanged"}},
		"version not served": {[]string{"v1alpha1, served: true", "v1alpha1, served: false"}, []string{
			"breaking VersionNotServed",
		}},
		"version removed": {
			[]string{"- {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n", ""},
			[]string{"breaking VersionRemoved"},
		},
		"version added": {[]string{
			"- name: v1\n",
			"- {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n- name: v1\n",
		}, []string{"safe VersionAdded"}},
		"storage moved": {[]string{
			"v1alpha1, served: true, storage: false", "v1alpha1, served: true, storage: true", "storage: true\n",
			"storage: false\n",
		}, []string{"needs care StorageMoved", "breaking StoredFieldDropped .status"}},
		"deprecated": {[]string{"{name: v1alpha1,", "{name: v1alpha1, deprecated: true,"}, []string{
			"needs care VersionDeprecated",
		}},
		"status subresource": {[]string{"status: {}, ", ""}, []string{"breaking SubresourceRemoved"}},
		"scale subresource": {
			[]string{", scale: {specReplicasPath: .spec.ready, statusReplicasPath: .status.ready}", ""},
			[]string{"breaking SubresourceRemoved"},
		},
		"selectable field": {[]string{"  selectableFields: [{jsonPath: .spec.a}]\n", ""}, []string{
			"breaking SelectableFieldRemoved .spec.a",
		}},
		"columns": {[]string{"name: A,", "name: B,"}, []string{"safe ColumnsChanged"}},
		"conversion": {[]string{"versions:\n", "conversion: {strategy: Webhook}\nversions:\n"}, []string{
			"needs care ConversionChanged",
		}},
		"singular": {[]string{"plural: widgets", "plural: widgets, singular: part"}, []string{
			"needs care NamesChanged",
		}},
		"default singular": {[]string{"plural: widgets", "plural: widgets, singular: widget"}, []string{}},
		"kind of lists": {[]string{"plural: widgets", "plural: widgets, listKind: Widgets"}, []string{
			"needs care NamesChanged",
		}},
		"default kind of lists": {[]string{"plural: widgets", "plural: widgets, listKind: WidgetList"}, []string{}},
		"no conversion":         {[]string{"versions:\n", "conversion: {strategy: None}\nversions:\n"}, []string{}},
		"status tightened": {[]string{"{type: integer}", "{type: integer, maximum: 3}"}, []string{
			"needs care ConstraintTightened .status.ready",
		}},
		"status field removed": {[]string{", properties: {ready: {type: integer}}", ""}, []string{
			"breaking FieldRemoved .status.ready",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			text := versions
			for i := 0; i < len(tc.replace); i += 2 {
				if !strings.Contains(text, tc.replace[i]) {
					t.Fatalf("the CRD does not contain %q", tc.replace[i])
				}
				text = strings.Replace(text, tc.replace[i], tc.replace[i+1], 1)
			}
			if diff := cmp.Diff(tc.want, summary(crddiff.CRD(decode(t, versions), decode(t, text)))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldsOfEveryObjectAlwaysExist(t *testing.T) {
	root := func(schema string) string {
		return strings.Replace(versions, "{openAPIV3Schema: {type: object}}", "{openAPIV3Schema: "+schema+"}", 1)
	}
	template := func(properties string) string {
		return root("{type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true, properties: {" +
			properties + "}}}}")
	}
	metadata := func(properties string) string {
		return root("{type: object, properties: {metadata: {type: object, properties: {" + properties + "}}}}")
	}
	none := root("{type: object}")
	for name, tc := range map[string]struct {
		from, to      string
		want, reverse []string
	}{
		"name": {
			none, metadata("name: {type: string, maxLength: 5}"), []string{"breaking ConstraintTightened .metadata.name"},
			[]string{"safe ConstraintLoosened .metadata.name"},
		},
		"shorter name": {
			metadata("name: {type: string, maxLength: 9}"), metadata("name: {type: string, maxLength: 5}"),
			[]string{"breaking ConstraintTightened .metadata.name"}, []string{"safe ConstraintLoosened .metadata.name"},
		},
		"generated name": {none, metadata("generateName: {type: string, pattern: ^a}"), []string{
			"breaking ConstraintTightened .metadata.generateName",
		}, []string{"safe ConstraintLoosened .metadata.generateName"}},
		"name after metadata": {
			root("{type: object, properties: {metadata: {type: object}}}"), metadata("name: {type: string, enum: [a]}"),
			[]string{"breaking EnumAdded .metadata.name"}, []string{"safe EnumRemoved .metadata.name"},
		},
		"unlimited name": {none, metadata("name: {type: string}"), []string{}, []string{}},
		"metadata":       {none, root("{type: object, properties: {metadata: {type: object}}}"), []string{}, []string{}},
		"kind": {
			none, root("{type: object, properties: {apiVersion: {type: string}, kind: {type: string}}}"), []string{}, []string{},
		},
		"documentation": {
			none, root("{type: object, properties: {kind: {type: string, description: text}}}"),
			[]string{"safe DocumentationChanged .kind"}, []string{"safe DocumentationChanged .kind"},
		},
		"required": {none, root("{type: object, required: [apiVersion, kind, metadata]}"), []string{}, []string{}},
		"unknown fields": {root("{type: object, x-kubernetes-preserve-unknown-fields: true}"), root(
			"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {metadata: {type: object, properties: {name: {type: string, minLength: 2}}}}}",
		), []string{"breaking ConstraintTightened .metadata.name"}, []string{"safe ConstraintLoosened .metadata.name"}},
		"template": {
			template(""), template("metadata: {type: object, properties: {name: {type: string, maxLength: 5}}}"),
			[]string{"breaking ConstraintTightened .spec.metadata.name"},
			[]string{"safe ConstraintLoosened .spec.metadata.name"},
		},
		"name is required": {
			metadata("name: {type: string}"), root("{type: object, properties: {metadata: {type: object, required: [name]}}}"),
			[]string{}, []string{},
		},
		"template of a kind": {
			template("kind: {type: string}"), strings.Replace(
				template("kind: {type: string}"), "x-kubernetes-embedded-resource: true,",
				"x-kubernetes-embedded-resource: true, required: [apiVersion, kind],", 1,
			),
			[]string{}, []string{},
		},
		"kind of the template": {
			template(""), template("kind: {type: string, enum: [A]}"), []string{"breaking EnumAdded .spec.kind"},
			[]string{"safe EnumRemoved .spec.kind"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summary(crddiff.CRD(decode(t, tc.from), decode(t, tc.to)))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.reverse, summary(crddiff.CRD(decode(t, tc.to), decode(t, tc.from)))); diff != "" {
				t.Errorf("changes in the other direction (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangesBetweenEqualStatesAreFound(t *testing.T) {
	with := func(conversion, version string) string {
		return strings.NewReplacer("versions:\n", conversion+"\nversions:\n", "{name: v1alpha1,", "{name: v1alpha1, "+
			version).Replace(versions)
	}
	webhook := func(service string) string {
		return with("conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: "+
			service+", namespace: a}}}}", "")
	}
	for name, tc := range map[string]struct {
		from, to string
		want     []string
	}{
		"other webhook":  {webhook("a"), webhook("b"), []string{"needs care ConversionChanged"}},
		"equal webhook":  {webhook("a"), webhook("a"), []string{}},
		"not deprecated": {with("", "deprecated: true,"), with("", ""), []string{"safe VersionNotDeprecated"}},
		"deprecation warning": {
			with("", "deprecated: true,"), with("", "deprecated: true, deprecationWarning: text,"),
			[]string{"safe DocumentationChanged"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summary(crddiff.CRD(decode(t, tc.from), decode(t, tc.to)))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemovalOfAStoredVersionIsBreakingEvenIfItWasNotServed(t *testing.T) {
	from := decode(t, strings.Replace(versions, "v1alpha1, served: true", "v1alpha1, served: false", 1))
	to := decode(t, strings.Replace(
		versions, "- {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n", "", 1,
	))
	if diff := cmp.Diff([]string{"safe VersionRemoved"}, summary(crddiff.CRD(from, to))); diff != "" {
		t.Errorf("without stored objects (-want +got):\n%s", diff)
	}
	from.Status.StoredVersions = []string{"v1alpha1", "v1"}
	if diff := cmp.Diff([]string{"breaking StoredVersionRemoved"}, summary(crddiff.CRD(from, to))); diff != "" {
		t.Errorf("with stored objects (-want +got):\n%s", diff)
	}
}

func TestChangesOfAVersionThatIsNotServedAreClassedByItsStorage(t *testing.T) {
	unserved := func(storage, schema string) string {
		other := map[string]string{"true": "false", "false": "true"}[storage]
		return `
group: example.org
scope: Namespaced
names: {kind: Widget, plural: widgets}
versions:
- {name: v2, served: true, storage: ` + other + `, schema: {openAPIV3Schema: {type: object}}}
- {name: v1, served: false, storage: ` + storage + `, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {spec: ` + schema + `}}}}
`
	}
	const a, none = "{type: object, properties: {a: {type: string}}}", "{type: object}"
	for name, tc := range map[string]struct {
		from, to       string
		stored, unused []string
	}{
		"field removed": {a, none, []string{"breaking FieldRemoved .spec.a"}, []string{"safe FieldRemoved .spec.a"}},
		"field kept": {a, "{type: object, x-kubernetes-preserve-unknown-fields: true}", []string{
			"safe UnknownFieldsKept .spec", "safe FieldRemoved .spec.a",
		}, []string{"safe UnknownFieldsKept .spec", "safe FieldRemoved .spec.a"}},
		"field added": {none, a, []string{"safe FieldAdded .spec.a"}, []string{"safe FieldAdded .spec.a"}},
		"pruned": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true}", none, []string{"breaking UnknownFieldsPruned .spec"},
			[]string{"safe UnknownFieldsPruned .spec"},
		},
		"type": {a, "{type: string}", []string{"breaking TypeChanged .spec"}, []string{"safe TypeChanged .spec"}},
		"default": {
			a, "{type: object, properties: {a: {type: string, default: x}}}", []string{"needs care DefaultAdded .spec.a"},
			[]string{"safe DefaultAdded .spec.a"},
		},
		"no default": {
			"{type: object, required: [a], properties: {a: {type: string, default: x}}}",
			"{type: object, required: [a], properties: {a: {type: string}}}", []string{"needs care DefaultRemoved .spec.a"},
			[]string{"safe DefaultRemoved .spec.a"},
		},
		"limit": {a, "{type: object, required: [a], properties: {a: {type: string, maxLength: 3}}}", []string{
			"safe ConstraintTightened .spec.a", "safe RequiredAdded .spec.a",
		}, []string{"safe ConstraintTightened .spec.a", "safe RequiredAdded .spec.a"}},
		"equal": {a, a, []string{}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(
				tc.stored, summary(crddiff.CRD(decode(t, unserved("true", tc.from)), decode(t, unserved("true", tc.to)))),
			); diff != "" {
				t.Errorf("in the storage version (-want +got):\n%s", diff)
			}
			from, to := decode(t, unserved("false", tc.from)), decode(t, unserved("false", tc.to))
			if diff := cmp.Diff(tc.unused, summary(crddiff.CRD(from, to))); diff != "" {
				t.Errorf("in another version (-want +got):\n%s", diff)
			}
			from.Status.StoredVersions = []string{"v1", "v2"}
			if diff := cmp.Diff(tc.stored, summary(crddiff.CRD(from, to))); diff != "" {
				t.Errorf("in a version with stored objects (-want +got):\n%s", diff)
			}
		})
	}
	from, to := unserved("false", a), strings.Replace(unserved("false", a), "subresources: {status: {}}, ", "", 1)
	if diff := cmp.Diff(
		[]string{"safe SubresourceRemoved"}, summary(crddiff.CRD(decode(t, from), decode(t, to))),
	); diff != "" {
		t.Errorf("subresource (-want +got):\n%s", diff)
	}
}

// TestHugeListsAreCompared has lists that take minutes if each element is compared with each other one: a server
// compares the packages of any author.
func TestHugeListsAreCompared(t *testing.T) {
	const elements = 150_000
	list := func(name string) string {
		var b strings.Builder
		for i := range elements {
			fmt.Fprintf(&b, "%s%d,", name, i)
		}
		return "[" + b.String() + "same]"
	}
	schema := func(name string) string {
		var rules strings.Builder
		for i := range elements / 10 {
			fmt.Fprintf(&rules, "{rule: %s%d},", name, i)
		}
		return "{enum: " + list(name) + ", required: " + list(name) + ", x-kubernetes-validations: [" + rules.String() +
			"{rule: same}]}"
	}
	counts := map[crddiff.Type]int{}
	for _, c := range crddiff.CRD(widget(t, schema("a")), widget(t, schema("b"))) {
		counts[c.Type]++
	}
	want := map[crddiff.Type]int{
		crddiff.EnumValuesRemoved: 1, crddiff.EnumValuesAdded: 1, crddiff.RequiredAdded: elements,
		crddiff.RuleAdded: elements / 10, crddiff.RuleRemoved: elements / 10,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestSetsAreComparedByName(t *testing.T) {
	text := func(size string) []byte {
		b, err := json.Marshal(widget(t, size))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	annotated := widget(t, "{type: string}")
	annotated.Annotations = map[string]string{"generator": "v2"}
	other, err := json.Marshal(annotated)
	if err != nil {
		t.Fatal(err)
	}
	d, err := crddiff.CRDs(
		map[string][]byte{
			"a": text("{type: string}"), "b": text("{type: string}"), "c": text("{type: string}"), "gone": text("{}"),
		},
		map[string][]byte{"a": text("{type: string}"), "b": text("{type: integer}"), "c": other, "new": text("{}")},
	)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new"}, d.Added); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"gone"}, d.Removed); diff != "" {
		t.Error(diff)
	}
	if len(d.Changed) != 1 || d.Changed[0].Name != "b" || d.Unchanged != 2 || d.Class() != crddiff.Breaking {
		t.Errorf("difference %+v", d)
	}
}

// Objects lose the fields that the new storage version does not describe, unless it keeps unknown fields or a webhook
// converts them.
func TestFieldsThatANewStorageVersionDropsAreBreaking(t *testing.T) {
	const crd = `
group: example.org
scope: Namespaced
names: {kind: Widget, plural: widgets}
versions:
- {name: v1alpha1, served: SERVED, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: FORMER}}}}
- {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: LATTER}}}}
`
	for name, tc := range map[string]struct {
		former, latter, conversion string
		want                       []string
	}{
		"the same fields": {
			former: "{type: object, properties: {a: {type: string}}}", latter: "{type: object, properties: {a: {type: string}}}",
		},
		"more fields": {
			former: "{type: object, properties: {a: {type: string}}}",
			latter: "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		},
		"tighter fields": {
			former: "{type: object, properties: {a: {type: string}}}",
			latter: "{type: object, properties: {a: {type: string, maxLength: 2}}}",
		},
		"fewer fields": {
			former: "{type: object, properties: {a: {type: string}, b: {type: string}}}",
			latter: "{type: object, properties: {a: {type: string}}}", want: []string{"breaking StoredFieldDropped .spec.b"},
		},
		"fewer fields in a list": {
			former: "{type: object, properties: {a: {type: array, items: {type: object, properties: {b: {type: string}}}}}}",
			latter: "{type: object, properties: {a: {type: array, items: {type: object}}}}",
			want:   []string{"breaking StoredFieldDropped .spec.a[*].b"},
		},
		"fields without validation": {
			former: "{type: object, properties: {a: {type: string}}}",
			latter: "{type: object, x-kubernetes-preserve-unknown-fields: true}",
		},
		"unknown fields": {
			former: "{type: object, x-kubernetes-preserve-unknown-fields: true}", latter: "{type: object}",
			want: []string{"breaking StoredFieldDropped .spec"},
		},
		"a map becomes a struct": {
			former: "{type: object, additionalProperties: {type: string}}",
			latter: "{type: object, properties: {a: {type: string}}}", want: []string{"breaking StoredFieldDropped .spec"},
		},
		"a webhook converts": {
			former: "{type: object, properties: {a: {type: string}, b: {type: string}}}", latter: "{type: object}",
			conversion: "conversion: {strategy: Webhook}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, served := range []string{"true", "false"} {
				from := decode(t, tc.conversion+
					strings.NewReplacer("SERVED", served, "FORMER", tc.former, "LATTER", tc.latter).Replace(crd))
				to := from.DeepCopy()
				to.Spec.Versions[0].Storage, to.Spec.Versions[1].Storage = false, true
				if diff := cmp.Diff(
					append([]string{"needs care StorageMoved"}, tc.want...), summary(crddiff.CRD(from, to)),
				); diff != "" {
					t.Errorf("served %s (-want +got):\n%s", served, diff)
				}
				from.Spec.Versions = from.Spec.Versions[:1]
				want := append([]string{"safe VersionAdded"}, append([]string{"needs care StorageMoved"}, tc.want...)...)
				slices.Sort(want)
				got := summary(crddiff.CRD(from, to))
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the version is new (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(append([]string{}, tc.want...), summary(crddiff.Dropped(to, "v1alpha1", "v1"))); diff != "" {
					t.Errorf("Dropped (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestRulesWithOtherMeaningDiffer compares rules that only differ in white space.
func TestRulesWithOtherMeaningDiffer(t *testing.T) {
	for name, tc := range map[string]struct{ from, to string }{
		"literal":         {`self != 'a b'`, `self != 'a  b'`},
		"escaped quote":   {`self != 'a\' b'`, `self != 'a\'  b'`},
		"raw literal":     {`self != r'a\' && self != 'b c'`, `self != r'a\' && self != 'b  c'`},
		"several lines":   {"self != '''a\nb'''", "self != '''a\n\nb'''"},
		"comment":         {`self != 'a' // and self != 'b'`, "self != 'a' // and\n&& self != 'b'"},
		"no comment":      {`self != '// a'`, `self != '// b'`},
		"quote in a note": {"self != 'a' // don't\n&& self != 'b  c'", "self != 'a' // don't\n&& self != 'b c'"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := func(rule string) *apiextensionsv1.CustomResourceDefinition {
				return widget(t, fmt.Sprintf("{type: string, x-kubernetes-validations: [{rule: %q}]}", rule))
			}
			want := []string{"breaking RuleAdded .spec.size", "safe RuleRemoved .spec.size"}
			if diff := cmp.Diff(want, summary(crddiff.CRD(crd(tc.from), crd(tc.to)))); diff != "" {
				t.Errorf("%s to %s (-want +got):\n%s", tc.from, tc.to, diff)
			}
		})
	}
}
