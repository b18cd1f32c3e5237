package manager_test

import (
	"fmt"
	"strings"
)

func provider(name string, crds ...string) string {
	return meta("Provider", name, "") + strings.Join(crds, "")
}

func meta(kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata:\n  name: %s\n  annotations:\n    meta.crossplane.io/source: example.org/%s\n%s", kind, name, name, spec)
}

func crd(group, kind, description string) string {
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[2]s.%[1]s
spec:
  group: %[1]s
  scope: Cluster
  names: {kind: %[3]s, plural: %[2]s, singular: %[4]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: %[5]s
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, group, plural, kind, strings.ToLower(kind), description)
}

// labeled puts a label on an object of a stream.
func labeled(stream, name, key, value string) string {
	return strings.Replace(stream, "  name: "+name+"\n", fmt.Sprintf("  name: %s\n  labels: {%s: %s}\n", name, key, value), 1)
}
