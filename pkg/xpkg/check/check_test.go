package check_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

const completeMeta = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: p
  annotations:
    meta.crossplane.io/maintainer: Example <maintainers@example.org>
    meta.crossplane.io/source: github.com/example/p
    meta.crossplane.io/license: Apache-2.0
    meta.crossplane.io/description: A provider.
    meta.crossplane.io/readme: A provider that provides.
---
`

// thing returns a definition with a schema and a few lines more in its spec.
func thing(schema, spec string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.org
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: ` + schema + "\n" + spec
}

func findings(t *testing.T, stream string, policy xpkg.Policy) []string {
	t.Helper()
	pkg, err := xpkg.Read([]byte(stream), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range check.Package(pkg, check.Options{Policy: policy, CRDs: crdvalidation.ValidateCRD}) {
		out = append(out, f.String())
	}
	return out
}

// A property whose name is a boolean in YAML gets another name. Only authors can correct it.
func TestPropertiesThatAreReadAsBooleansAreReported(t *testing.T) {
	for name, want := range map[string]string{"y": "true", "on": "true", "no": "false", "'y'": "", "yes1": ""} {
		stream := completeMeta +
			thing("{type: object, properties: {spec: {type: object, properties: {"+name+": {type: string}}}}}", "")
		got := findings(t, stream, xpkg.PolicyBuild())
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(
			got[0], "BooleanProperty",
		) || !strings.HasSuffix(got[0], "properties[spec].properties["+want+"]")) {
			t.Errorf("%s: %q", name, got)
		}
		if installed := findings(t, stream, xpkg.PolicyInstall()); len(installed) > 0 {
			t.Errorf("%s: an install reports %q", name, installed)
		}
	}
}

// hardening: D4, E8
func TestCheckDefinitions(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		want   []string
	}{
		"good": {thing("{type: object}", ""), nil},
		"webhook": {thing(
			"{type: object}",
			"  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {path: /convert}}}}\n",
		), nil},
		"default of another type": {thing("{type: object, properties: {a: {type: string, default: 1}}}", ""), []string{
			`package.yaml:25: error InvalidCRD: document 2, CustomResourceDefinition, "things.example.org": spec.versions[0].schema.openAPIV3Schema.properties[a].default: Invalid value: "integer": `,
		}},
		"rule that is no CEL": {thing(
			"{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: self +}]}}}", "",
		), []string{
			`package.yaml:25: error InvalidCRD: document 2, CustomResourceDefinition, "things.example.org": spec.versions[0].schema.openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule: invalid value: compilation failed: ERROR: <input>:1:7: Syntax error: `,
		}},
		"authority": {thing(
			"{type: object}",
			"  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: Zm9v}}}\n",
		), []string{
			`package.yaml:26: warning CABundleIgnored: document 2, CustomResourceDefinition, "things.example.org": spec.conversion.webhook.clientConfig.caBundle is set`,
		}},
		"names": {strings.Replace(thing("{type: object}", ""), "plural: things", "plural: THINGS", 1), []string{
			`package.yaml:15: error CRDName: document 2, CustomResourceDefinition, "things.example.org": metadata.name must be "THINGS.example.org"`,
			`package.yaml:18: error InvalidCRD: document 2, CustomResourceDefinition, "things.example.org": spec.names.plural: Invalid value: "THINGS": a DNS-1035 label must`,
		}},
		"wrong type": {strings.Replace(thing("{type: object}", ""), "served: true", "served: sure", 1), []string{
			`package.yaml:22: error InvalidCRD: document 2, CustomResourceDefinition, "things.example.org": spec.versions[0].served: a boolean is expected, not a string`,
		}},
		"reserved group": {strings.NewReplacer(
			"example.org", "storage.k8s.io", "metadata:\n",
			"metadata:\n  annotations: {api-approved.kubernetes.io: https://github.com/kubernetes/kubernetes/pull/1}\n",
		).Replace(thing("{type: object}", "")), []string{
			`package.yaml:18: error ReservedDefinition: document 2, CustomResourceDefinition, "things.storage.k8s.io": things.storage.k8s.io is in the group storage.k8s.io, which is reserved for Kubernetes, Crossplane and xpkg`,
		}},
		"approved group": {strings.NewReplacer(
			"example.org", "example.k8s.io", "metadata:\n",
			"metadata:\n  annotations: {api-approved.kubernetes.io: https://github.com/kubernetes/kubernetes/pull/1}\n",
		).Replace(thing("{type: object}", "")), nil},
		"group of the community": {strings.ReplaceAll(thing("{type: object}", ""), "example.org", "example.k8s.io"), []string{
			`package.yaml:14: error UnapprovedGroup: document 2, CustomResourceDefinition, "things.example.k8s.io": group "example.k8s.io" without the annotation api-approved.kubernetes.io`,
		}},
		"old": {`apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec: {group: example.org, names: {kind: Thing, plural: things}, version: v1}
`, []string{
			`package.yaml:12: warning DeprecatedCRD: document 2, CustomResourceDefinition, "things.example.org": apiextensions.k8s.io/v1beta1`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := findings(t, completeMeta+c.object, xpkg.PolicyInstall())
			for i := range min(len(got), len(c.want)) {
				// The wording of the API server after this prefix is not compared.
				if strings.HasPrefix(got[i], c.want[i]) {
					got[i] = c.want[i]
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// hardening: D11
func TestCheckMeta(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"complete": {"", "", nil},
		"missing": {
			"    meta.crossplane.io/source: github.com/example/p\n    meta.crossplane.io/license: Apache-2.0\n", "", []string{
				`package.yaml:5: warning MissingAnnotation: document 1, Provider, "p": no meta.crossplane.io/source, meta.crossplane.io/license`,
			}},
		"license": {"Apache-2.0", "Apache", []string{
			`package.yaml:8: warning InvalidLicense: document 1, Provider, "p": meta.crossplane.io/license is "Apache": "Apache" is not an SPDX identifier`,
		}},
		"source": {"github.com/example/p", "our repository", []string{
			`package.yaml:7: warning InvalidSource: document 1, Provider, "p": meta.crossplane.io/source is "our repository", which is not a URL`,
		}},
		"reserved": {
			"    meta.crossplane.io/license: ", "    crossplane.io/paused: \"true\"\n    meta.crossplane.io/license: ", []string{
				`package.yaml:8: error ReservedKey: document 1, Provider, "p": only users set the annotation "crossplane.io/paused"; it is ignored`,
			}},
		"retraction": {
			"    meta.crossplane.io/license: ",
			"    xpkg.dev/retract: '[{\"versions\": \"<v1.1.0\", \"reason\": \"broken\"}]'\n    meta.crossplane.io/license: ",
			nil,
		},
		"no retraction": {
			"    meta.crossplane.io/license: ",
			"    xpkg.dev/retract: '[{\"reason\": \"broken\"}]'\n    meta.crossplane.io/license: ",
			[]string{
				`package.yaml:8: error InvalidStatus: document 1, Provider, "p": entry 1 of the annotation xpkg.dev/retract names no versions`,
			},
		},
		"capabilities": {"---\n", "spec: {capabilities: [SafeStart, time-travel]}\n---\n", []string{
			`package.yaml:11: warning UnknownCapability: document 1, Provider, "p": spec.capabilities[1] is "time-travel"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := findings(t, strings.Replace(completeMeta, c.from, c.to, 1), xpkg.PolicyBuild())
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	schema := "{type: object, properties: {" + strings.Repeat("a%: {}, ", 30) + "}}"
	for i := range 30 {
		schema = strings.Replace(schema, "%", string(rune('a'+i%26))+strings.Repeat("x", i/26), 1)
	}
	got := findings(t, completeMeta+thing(schema, ""), xpkg.PolicyInstall())
	if len(got) != 21 ||
		!strings.HasSuffix(got[20], "10 more problems") && !strings.HasSuffix(got[0], "10 more problems") {
		t.Errorf("%d findings:\n%s", len(got), strings.Join(got, "\n"))
	}
}

func TestConvertV1Beta1(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"without a schema": {
			`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"annotations":{"a":"<b>"},"creationTimestamp":null,"name":"things.example.org"},"spec":{"group":"example.org","names":{"kind":"Thing","plural":"things"},"version":"v1alpha1"},"status":{"conditions":[],"storedVersions":[]}}`,
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"annotations":{"a":"<b>"},"name":"things.example.org"},"spec":{"conversion":{"strategy":"None"},"group":"example.org","names":{"kind":"Thing","listKind":"ThingList","plural":"things","singular":"thing"},"scope":"Namespaced","versions":[{"name":"v1alpha1","schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},"served":true,"storage":true}]}}`,
		},
		"keeps unknown fields": {
			`{"metadata":{"name":"things.example.org"},"spec":{"group":"example.org","names":{"kind":"Thing","plural":"things"},"scope":"Cluster","validation":{"openAPIV3Schema":{"properties":{"metadata":{"type":"object"},"spec":{"properties":{"list":{"items":{"type":"object"},"type":"array"},"map":{"additionalProperties":{"type":"string"},"type":"object"}},"type":"object"}}}},"version":"v1"}}`,
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.org"},"spec":{"conversion":{"strategy":"None"},"group":"example.org","names":{"kind":"Thing","listKind":"ThingList","plural":"things","singular":"thing"},"scope":"Cluster","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"metadata":{"type":"object"},"spec":{"properties":{"list":{"items":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"type":"array"},"map":{"additionalProperties":{"type":"string"},"type":"object"}},"type":"object","x-kubernetes-preserve-unknown-fields":true}},"type":"object","x-kubernetes-preserve-unknown-fields":true}},"served":true,"storage":true}]}}`,
		},
		"prunes as it did": {
			`{"metadata":{"name":"things.example.org"},"spec":{"additionalPrinterColumns":[{"JSONPath":".a","name":"A","type":"string"}],"group":"example.org","names":{"kind":"Thing","plural":"things"},"preserveUnknownFields":false,"scope":"Cluster","subresources":{"status":{}},"validation":{"openAPIV3Schema":{"type":"object"}},"version":"v1","versions":[{"name":"v1","served":true,"storage":true},{"name":"v1alpha1","served":false,"storage":false}]}}`,
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.org"},"spec":{"conversion":{"strategy":"None"},"group":"example.org","names":{"kind":"Thing","listKind":"ThingList","plural":"things","singular":"thing"},"scope":"Cluster","versions":[{"additionalPrinterColumns":[{"jsonPath":".a","name":"A","type":"string"}],"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":true,"subresources":{"status":{}}},{"additionalPrinterColumns":[{"jsonPath":".a","name":"A","type":"string"}],"name":"v1alpha1","schema":{"openAPIV3Schema":{"type":"object"}},"served":false,"storage":false,"subresources":{"status":{}}}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := crd.FromV1Beta1([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if p := crdvalidation.ValidateCRD(got); len(p) > 0 {
				t.Errorf("an API server refuses it: %v", p)
			}
		})
	}
	if _, err := crd.FromV1Beta1([]byte(`{"spec":[]}`)); err == nil {
		t.Error("nonsense is converted")
	}
}

func TestFindingsAsJSON(t *testing.T) {
	_, err := xpkg.Read([]byte("a: b\n"), xpkg.ReadOptions{File: "x.yaml"})
	got, err := json.Marshal(xpkg.Findings(err))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"code":"NotAnObject","severity":"error","message":"the document has neither apiVersion nor kind","file":"x.yaml","line":1,"document":1,"fix":"Add an apiVersion and a kind to the document, or remove it from the package."}]`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestCheckRefusesReservedGroupsWithTheirLine(t *testing.T) {
	composite := `apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: things.example.org
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  versions: []
`
	managed := strings.Replace(strings.Replace(composite, "v2", "v1alpha1", 1), "Composite", "Managed", 1)
	const configuration = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: c\nspec: {}\n---\n"
	for _, group := range rbac.ReservedGroups() {
		t.Run(group, func(t *testing.T) {
			for kind, stream := range map[string]string{
				"CustomResourceDefinition":    completeMeta + thing("{type: object}", ""),
				"ManagedResourceDefinition":   completeMeta + managed,
				"CompositeResourceDefinition": configuration + composite,
			} {
				line := 1 + strings.Count(stream[:strings.Index(stream, "  group: ")], "\n")
				want := fmt.Sprintf(
					`package.yaml:%d: error ReservedDefinition: document 2, %s, "things.%[3]s": things.%[3]s is in the group %[3]s, `,
					line, kind, group,
				)
				got := findings(t, strings.ReplaceAll(stream, "example.org", group), xpkg.PolicyInstall())
				if !slices.ContainsFunc(got, func(finding string) bool { return strings.HasPrefix(finding, want) }) {
					t.Errorf("%s: want %s\ngot %s", kind, want, strings.Join(got, "\n"))
				}
			}
		})
	}
}

// xrd returns an XRD of two versions, the second one v2, with the schema of a field.
func xrd(name, first, field string) string {
	version := "{name: %s, served: true, referenceable: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {x: " +
		field + "}}}}}}"
	return "apiVersion: apiextensions.crossplane.io/v2\nkind: CompositeResourceDefinition\nmetadata: {name: " + name +
		"}\n" +
		"spec: {group: b.c, names: {kind: A, plural: a}, scope: Cluster, versions: [" +
		fmt.Sprintf(version+", "+version, first, true, "v2", false) + "]}\n"
}

func TestCheckValidatesTheObjectsOfEachKind(t *testing.T) {
	const (
		configuration = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: c}\n---\n"
		provider      = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p}\n---\n"
		composition   = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: c}\n"
		webhook       = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: w}\n"
	)
	for name, c := range map[string]struct{ stream, want string }{
		"required": {
			configuration + composition + "spec: {mode: Pipeline, pipeline: [{step: a}]}\n",
			`package.yaml:8: error InvalidPackageObject: document 2, Composition, "c": spec.compositeTypeRef: is required`,
		},
		"type": {
			configuration + composition + "spec: {compositeTypeRef: {apiVersion: v1, kind: K}, pipeline: {}}\n",
			"spec.pipeline: a list is expected, not a mapping",
		},
		"word": {
			configuration + composition + "spec:\n  compositeTypeRef: {apiVersion: v1, kind: K}\n  mode: pipeline\n",
			`package.yaml:10: error InvalidPackageObject: document 2, Composition, "c": spec.mode: "pipeline" is none of Resources, Pipeline`,
		},
		"pipeline": {
			configuration + composition + "spec: {compositeTypeRef: {apiVersion: v1, kind: K}, mode: Pipeline}\n",
			"spec.pipeline: is required in the mode Pipeline",
		},
		"twice": {
			configuration + composition +
				"spec: {compositeTypeRef: {apiVersion: v1, kind: K}, pipeline: [{step: a, functionRef: {name: f}}, {step: a, functionRef: {name: f}}]}\n",
			`spec.pipeline[1].step: "a" occurs twice`,
		},
		"XRD": {
			configuration +
				"apiVersion: apiextensions.crossplane.io/v2\nkind: CompositeResourceDefinition\nmetadata: {name: a.b.c}\nspec: {group: b.c, names: {kind: A, plural: a}, scope: cluster, versions: [], claimNames: {}}\n",
			`spec.claimNames.kind: is required`,
		},
		"XRD name": {
			configuration + xrd("b.c.d", "v1", "{}"),
			`InvalidXRD: document 2, CompositeResourceDefinition, "b.c.d": metadata.name must be "a.b.c"`,
		},
		"XRD versions": {
			configuration + xrd("a.b.c", "v2", "{}"),
			`InvalidXRD: document 2, CompositeResourceDefinition, "a.b.c": the version "v2" is a duplicate`,
		},
		"XRD type": {
			configuration + xrd("a.b.c", "v1", "{type: text}"),
			`InvalidXRD: document 2, CompositeResourceDefinition, "a.b.c": spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[x].type: `,
		},
		"XRD pattern": {
			configuration + xrd("a.b.c", "v1", `{type: string, pattern: "["}`),
			`InvalidXRD: document 2, CompositeResourceDefinition, "a.b.c": spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[x].pattern: `,
		},
		"no steps": {
			configuration + composition + "spec: {compositeTypeRef: {apiVersion: v1, kind: K}, mode: Pipeline, pipeline: []}\n",
			"spec.pipeline: is required in the mode Pipeline, with at least one step",
		},
		"XRD secrets": {configuration + strings.Replace(
			xrd("a.b.c", "v1", "{}"), "scope: Cluster", "scope: Cluster, connectionSecretKeys: [a]", 1,
		), "spec.connectionSecretKeys: an XRD of apiextensions.crossplane.io/v2 has no connection secrets"},
		"XRD singular": {
			configuration + strings.Replace(xrd("a.b.c", "v1", "{}"), "plural: a}", "plural: a, singular: A}", 1),
			`InvalidXRD: document 2, CompositeResourceDefinition, "a.b.c": spec.names.singular: `,
		},
		"XRD claim": {configuration + strings.NewReplacer(
			"crossplane.io/v2", "crossplane.io/v1", "scope: Cluster", "claimNames: {kind: Claim, plural: Claims}",
		).Replace(xrd(
			"a.b.c", "v1", "{}",
		)), `InvalidXRD: document 2, CompositeResourceDefinition, "a.b.c": spec.claimNames.plural: `},
		"XRD webhook": {configuration + strings.Replace(
			xrd("a.b.c", "v1", "{}"), "scope: Cluster", "scope: Cluster, conversion: {strategy: Webhook}", 1,
		), `InvalidXRD: document 2, CompositeResourceDefinition, "a.b.c": spec.conversion.`},
		"MRD": {
			provider +
				"apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceDefinition\nmetadata: {name: as.b.c}\nspec: {group: b.c, names: {kind: A, plural: as, singular: A}, scope: Cluster, versions: []}\n",
			`spec.names.singular: "A" is not in lower case`,
		},
		"requirements": {
			configuration +
				"apiVersion: ops.crossplane.io/v1alpha1\nkind: CronOperation\nmetadata: {name: o}\nspec: {schedule: a, operationTemplate: {spec: {mode: Pipeline, pipeline: [{step: a, functionRef: {name: f}, requirements: {requiredResources: [{requirementName: r, apiVersion: v1, kind: K, name: x, matchLabels: {}}]}}]}}}\n",
			"spec.operationTemplate.spec.pipeline[0].requirements.requiredResources[0]: name and matchLabels exclude each other",
		},
		"operation": {
			configuration +
				"apiVersion: ops.crossplane.io/v1alpha1\nkind: Operation\nmetadata: {name: o}\nspec: {pipeline: []}\n",
			"spec.pipeline: has 0 elements, not between 1 and 99",
		},
		"webhook": {
			provider + webhook + "webhooks: [{name: short, sideEffects: Some, admissionReviewVersions: []}]\n",
			`webhooks[0].sideEffects: "Some" is none of None, NoneOnDryRun`,
		},
		"webhook name": {
			provider + webhook + "webhooks: [{name: short, sideEffects: None, admissionReviewVersions: [v1]}]\n",
			`webhooks[0].name: "short" is not a domain name with at least three parts`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := findings(
				t, c.stream, xpkg.PolicyInstall(),
			); !slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, c.want) }) {
				t.Errorf("got %q, want %s", got, c.want)
			}
		})
	}
}

// Objects that Crossplane 1 accepts and Crossplane 2 does not are warnings for the author of a package, and nothing at
// install: the CRDs in the cluster decide then.
func TestCheckWarnsOfObjectsThatCrossplane2Rejects(t *testing.T) {
	const (
		configuration = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: c}\n---\n"
		composition   = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: c}\nspec: {compositeTypeRef: {apiVersion: v1, kind: K}, pipeline: "
	)
	old := strings.Replace(xrd("a.b.c", "v1", "{}"), "crossplane.io/v2", "crossplane.io/v1", 1)
	var steps []string
	for i := range 100 {
		steps = append(steps, fmt.Sprintf("{step: s%d, functionRef: {name: f}}", i))
	}
	step := func(field string) string { return "[{step: a, functionRef: {name: f}, " + field + "}]}\n" }
	for name, c := range map[string]struct{ object, want string }{
		"no steps": {composition + "[]}\n", "spec.pipeline: has no steps"},
		"many steps": {composition + "[" + strings.Join(steps, ", ") +
			"]}\n", "spec.pipeline: has 100 steps, more than 99"},
		"no Secret": {
			composition + step("credentials: [{name: c, source: Secret}]"),
			"spec.pipeline[0].credentials[0].secretRef: is required for the source Secret",
		},
		"two selectors": {composition + step(
			"requirements: {requiredResources: [{requirementName: r, apiVersion: v1, kind: K, name: x, matchLabels: {a: b}}]}",
		), "requiredResources[0]: name and matchLabels exclude each other"},
		"scope of claims": {
			strings.Replace(old, "scope: Cluster", "scope: Cluster, claimNames: {kind: B, plural: bs}", 1),
			"spec.claimNames: only the scope LegacyCluster has claims, not Cluster",
		},
		"scope of secrets": {
			strings.Replace(old, "scope: Cluster", "scope: Namespaced, connectionSecretKeys: [a]", 1),
			"spec.connectionSecretKeys: only the scope LegacyCluster has connection secrets, not Namespaced",
		},
		"conversion": {
			strings.Replace(old, "scope: Cluster", "conversion: {strategy: None}", 1),
			"spec.conversion.strategy: Webhook is the only strategy; remove the conversion",
		},
		"legacy": {strings.Replace(
			old, "scope: Cluster", "scope: LegacyCluster, claimNames: {kind: B, plural: bs}, connectionSecretKeys: [a]", 1,
		), ""},
		"a Secret": {composition + step("credentials: [{name: c, source: Secret, secretRef: {name: s, namespace: n}}]"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			warnings := func(policy xpkg.Policy) []string {
				return slices.DeleteFunc(
					findings(t, configuration+c.object, policy),
					func(f string) bool { return !strings.Contains(f, "warning NotForCrossplane2: ") },
				)
			}
			got := warnings(xpkg.PolicyBuild())
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasSuffix(got[0], c.want)) {
				t.Errorf("got %q, want %s", got, c.want)
			}
			if got := warnings(xpkg.PolicyInstall()); len(got) > 0 {
				t.Errorf("at install: %q", got)
			}
		})
	}
}

// The composite resources and the claims of XRDs, and MRDs, are compared like CRDs.
func TestXRDsAndMRDsWithOneNameAreRefused(t *testing.T) {
	meta := func(kind string) string {
		return "apiVersion: meta.pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata: {name: c}\n---\n"
	}
	definition := func(kind, version, plural, names string) string {
		return "apiVersion: apiextensions.crossplane.io/" + version + "\nkind: " + kind + "\nmetadata: {name: " + plural +
			".example.org}\nspec: {group: example.org, scope: Cluster, names: {plural: " + plural + ", " + names +
			", versions: [{name: v1, served: true, storage: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}]}\n---\n"
	}
	xrd := func(plural, names string) string {
		return strings.NewReplacer(", scope: Cluster", "", "storage: true, ", "").
			Replace(definition("CompositeResourceDefinition", "v1", plural, names))
	}
	mrd := func(plural, names string) string {
		return strings.Replace(
			definition("ManagedResourceDefinition", "v1alpha1", plural, names), "referenceable: true, ", "", 1,
		)
	}
	first := xrd("xthings", "kind: XThing}, claimNames: {kind: Thing, plural: things}")
	for name, c := range map[string]struct{ kind, stream, want string }{
		"composite resource and claim": {"Configuration", first +
			xrd("ythings", "kind: Thing}"), `spec.names.kind "Thing" is also defined by xthings.example.org`},
		"two claims": {
			"Configuration", first + xrd("ythings", "kind: YThing}, claimNames: {kind: Other, plural: things}"),
			`spec.claimNames.plural "things" is also defined by xthings.example.org`,
		},
		"other names": {"Configuration", first +
			xrd("ythings", "kind: YThing}, claimNames: {kind: Other, plural: others}"), ""},
		"two MRDs": {"Provider", mrd("things", "kind: Thing}") +
			mrd("others", "kind: Other, singular: thing}"), `spec.names.singular "thing" is also defined by things.example.org`},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.DeleteFunc(
				findings(t, meta(c.kind)+c.stream, xpkg.PolicyInstall()),
				func(f string) bool { return !strings.Contains(f, "error DuplicateCRDName") },
			)
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) == 0 || !strings.HasSuffix(got[0], c.want)) {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

// Two CRDs of one group that have a name in common are refused: an API server establishes only the first one.
// CRDs of different groups, and the CRDs of a Function, are not compared.
//
// hardening: E8
func TestCRDsWithOneNameAreRefused(t *testing.T) {
	crd := func(plural, names, group string) string {
		return strings.NewReplacer(
			"things.example.org", plural+"."+group, "group: example.org", "group: "+group, "{kind: Thing, plural: things}",
			"{plural: "+plural+", "+names+"}",
		).Replace(thing("{type: object}", "")) + "---\n"
	}
	first := crd("things", "kind: Thing, shortNames: [th]", "example.org")
	for name, c := range map[string]struct{ second, want string }{
		"kind": {
			crd("others", "kind: Thing, singular: other, listKind: OtherList", "example.org"), `spec.names.kind "Thing"`,
		},
		"list kind": {
			crd("others", "kind: Other, listKind: ThingList", "example.org"), `spec.names.listKind "ThingList"`,
		},
		"kind of a list": {crd("others", "kind: ThingList", "example.org"), `spec.names.kind "ThingList"`},
		"singular": {
			crd("others", "kind: Other, singular: thing", "example.org"), `spec.names.singular "thing"`,
		},
		"short name": {
			crd("others", "kind: Other, shortNames: [o, th]", "example.org"), `spec.names.shortNames[1] "th"`,
		},
		"short name and plural": {
			crd("others", "kind: Other, shortNames: [things]", "example.org"), `spec.names.shortNames[0] "things"`,
		},
		"another group": {crd("things", "kind: Thing, shortNames: [th]", "elsewhere.example.org"), ""},
		"other names":   {crd("others", "kind: Other, shortNames: [o]", "example.org"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := findings(t, completeMeta+first+c.second, xpkg.PolicyInstall())
			if c.want == "" {
				if len(got) > 0 {
					t.Errorf("refused: %v", got)
				}
			} else if len(got) != 1 || !strings.Contains(got[0], "error DuplicateCRDName: document 3") ||
				!strings.HasSuffix(got[0], c.want+" is also defined by things.example.org") {
				t.Errorf("got %v, want %s", got, c.want)
			}
			function := strings.Replace(completeMeta, "kind: Provider", "kind: Function", 1)
			if got := findings(t, function+first+c.second, xpkg.PolicyInstall()); len(got) > 0 {
				t.Errorf("in a Function: %v", got)
			}
		})
	}
}
