package hook

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Stream returns the package.yaml of a provider with one kind, Thing, in the versions v1 and
// v2. Its runtime converts objects, rejects objects whose names begin with "bad", and labels
// all others. Stored is the storage version.
func Stream(name, group, stored string) string {
	return fmt.Sprintf(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: %[1]s}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[2]s}
spec:
  group: %[2]s
  scope: Cluster
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1]}
  versions:
  - {name: v1, served: true, storage: %[3]t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: %[4]t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, name, group, stored == "v1", stored == "v2") + configuration("Validating", "/validate", group) + configuration("Mutating", "/mutate", group)
}

// Outside returns the package.yaml of a provider with one kind, Thing, whose validating
// webhook matches a resource of another package, with the failure policy Fail. The
// resource "*/*" is in every group, and any other one in the core group.
func Outside(name, group, resource, operations string) string {
	of := ""
	if resource == "*/*" {
		of = "*"
	}
	return fmt.Sprintf(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: %[1]s}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[2]s}
spec:
  group: %[2]s
  scope: Cluster
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: any}
webhooks:
- name: any.%[2]s
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 2
  clientConfig: {service: {name: any, namespace: any, path: /validate}}
  rules:
  - {apiGroups: [%[3]q], apiVersions: ["*"], resources: [%[4]q], operations: [%[5]s]}
`, name, group, of, resource, quoted(operations))
}

func configuration(kind, path, group string) string {
	return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: any}
webhooks:
- name: any.%s
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 10
  clientConfig: {service: {name: any, namespace: any, path: %s}}
  rules:
  - {apiGroups: [%s], apiVersions: ["*"], resources: [things], operations: [CREATE]}
`, kind, group, path, group)
}

// Thing returns an object of the kind that the package of [Stream] defines.
func Thing(group, version, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(group + "/" + version)
	u.SetKind("Thing")
	u.SetName(name)
	return u
}

func quoted(words string) string {
	return `"` + strings.ReplaceAll(words, ", ", `", "`) + `"`
}
