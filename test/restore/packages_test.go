package restore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// world names what one test installs: a group, and packages whose names begin with it.
type world struct {
	name  string
	group string
}

func (w world) ref(s *stand, pkg, tag string) string {
	return fmt.Sprintf("%s/%s/%s:%s", s.registry, w.name, pkg, tag)
}

func meta(kind, name string) string {
	return fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata: {name: %s}\n", kind, name)
}

// definition defines a cluster-scoped kind.
func (w world) definition(kind, text string) string {
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
`, w.group, one, kind, text)
}

func (w world) composition(name, text string) string {
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
`, name, w.group, w.group, text)
}

// push pushes a package and gives its reference.
func (w world) push(t *testing.T, s *stand, pkg, tag, stream string) string {
	t.Helper()
	image, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(stream)})
	if err != nil {
		t.Fatal(err)
	}
	ref := w.ref(s, pkg, tag)
	to, err := oci.ParseReference(ref, oci.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remote := remote.New(remote.Options{})
	defer remote.Close()
	if _, err := remote.Push(t.Context(), to, image); err != nil {
		t.Fatal(err)
	}
	return ref
}

func (w world) provider(ref string, how func(*v1.Provider)) *v1.Provider {
	p := &v1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + lastPart(ref), Labels: map[string]string{"argocd.argoproj.io/instance": "any"}},
		Spec:       v1.ProviderSpec{PackageSpec: v1.PackageSpec{Package: ref}},
	}
	if how != nil {
		how(p)
	}
	return p
}

// lastPart is the name of a repository without what is above it.
func lastPart(ref string) string {
	name, _, _ := strings.Cut(ref[strings.LastIndex(ref, "/")+1:], ":")
	return name
}
