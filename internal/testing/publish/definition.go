package publish

import (
	"fmt"
	"strings"
)

// Definition returns the YAML of a CRD of a cluster-scoped kind, as a further document of a
// package.yaml. The description distinguishes versions of the CRD.
func Definition(group, kind, description string) string {
	singular := strings.ToLower(kind)
	return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[2]ss.%[1]s
spec:
  group: %[1]s
  scope: Cluster
  names: {kind: %[3]s, plural: %[2]ss, singular: %[2]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: %[4]s
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, group, singular, kind, description)
}
