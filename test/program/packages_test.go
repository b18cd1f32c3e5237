//go:build unix

package program_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// providerFolder writes a provider with a number of small CRDs of one API group, and returns its
// folder.
func providerFolder(t testing.TB, name, group string, definitions int) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "crossplane.yaml"), fmt.Sprintf(`apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: %s
`, name))
	for i := range definitions {
		plural := fmt.Sprintf("thing%02ds", i)
		write(t, filepath.Join(dir, "crds", plural+".yaml"), definition(group, plural))
	}
	return dir
}

// properties is how many properties a definition has, so that establishing it takes
// the API server about as long as a small one of the field.
const properties = 40

func definition(group, plural string) string {
	singular := strings.TrimSuffix(plural, "s")
	kind := strings.ToUpper(singular[:1]) + singular[1:]
	var fields strings.Builder
	for i := range properties {
		fmt.Fprintf(
			&fields, "              field%d: {type: string, description: Field %d of the thing., maxLength: %d}\n", i, i, 100+i,
		)
	}
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[2]s.%[1]s
spec:
  group: %[1]s
  names: {kind: %[4]s, listKind: %[4]sList, plural: %[2]s, singular: %[3]s}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
%[5]s`, group, plural, singular, kind, fields.String())
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
