package restore_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// fixture is the set of packages that one test installs. Their names begin with the name of the
// fixture, and their CRDs have its API group.
type fixture struct {
	name  string
	group string
}

func meta(kind, name string) string {
	return fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata: {name: %s}\n", kind, name)
}

// definition returns the CRD of a cluster-scoped kind, with a label.
func (f fixture) definition(kind, text string) string {
	one := strings.ToLower(kind)
	return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[2]ss.%[1]s
  labels: {of: package}
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
`, f.group, one, kind, text)
}

func (f fixture) composition(name, text string) string {
	return fmt.Sprintf(`---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: %s.%s}
spec:
  compositeTypeRef: {apiVersion: %s/v1, kind: XAny}
  mode: Pipeline
  pipeline:
  - step: %s
    functionRef: {name: any}
`, name, f.group, f.group, text)
}

// push pushes a package and returns its reference.
func (f fixture) push(t *testing.T, c *cluster, pkg, tag, stream string) string {
	t.Helper()
	return c.Push(t, f.name+"/"+pkg, tag, stream)
}

func (f fixture) provider(ref string, how func(*v1.Provider)) *v1.Provider {
	p := &v1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: f.name + "-" +
			lastPart(ref), Labels: map[string]string{"argocd.argoproj.io/instance": "any"}},
		Spec: v1.ProviderSpec{PackageSpec: v1.PackageSpec{Package: ref}},
	}
	if how != nil {
		how(p)
	}
	return p
}

// lastPart returns the last path element of a repository.
func lastPart(ref string) string {
	name, _, _ := strings.Cut(ref[strings.LastIndex(ref, "/")+1:], ":")
	return name
}
