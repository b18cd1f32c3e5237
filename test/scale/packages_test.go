package scale_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// domain ends the names of all objects that the packages bring.
const domain = "scale.test"

// How many packages of each sort there are: 200 in all, ten of which cannot be
// installed. Of each pair that brings the same definition one is installed.
const (
	providers      = 107
	configurations = 60
	functions      = 20
	pairs          = 3
	misspelt       = 1
	notCached      = 1
	withoutTag     = 3
	unreachable    = 2
)

// expected is one package and what becomes of it.
type expected struct {
	pkg v1.Package
	// fails is why it cannot be installed; nil when it can.
	fails *errcode.Code
	// rival is the name of the package that brings the same object.
	rival string
}

// nobody listens on that port of this machine, so that the refusal comes at once.
const nobody = "127.0.0.1:1"

// conflict is why one of a pair is not installed.
var conflict = apply.ErrRefused

// everything publishes all packages and gives what is to be created. Those that
// fail come first, so that all others come after them.
func everything(t *testing.T, registry string) []expected {
	t.Helper()
	var out []expected
	fail := func(n int, sort, image string, policy corev1.PullPolicy, why errcode.Code) {
		for i := range n {
			p := named(v1.ProviderKind, fmt.Sprintf("%s-%d", sort, i), strings.ReplaceAll(image, "#", fmt.Sprint(i)))
			p.PackageSpec().PackagePullPolicy = policy
			out = append(out, expected{pkg: p, fails: &why})
		}
	}
	fail(misspelt, "misspelt", registry+"/-wrong-#:v1", corev1.PullIfNotPresent, oci.ErrInvalidReference)
	fail(notCached, "not-cached", "never-put-there-#", corev1.PullNever, cache.ErrNotInCache)
	fail(withoutTag, "without-tag", registry+"/scale/without-#:v1", corev1.PullIfNotPresent, remote.ErrTagNotFound)
	fail(unreachable, "unreachable", nobody+"/scale/unreachable-#:v1", corev1.PullIfNotPresent, remote.ErrRegistryUnavailable)
	good := func(kind, name, stream string) *expected {
		ref := publish.Stream(t, registry, "scale/"+name, "v1.0.0", []byte(stream))
		out = append(out, expected{pkg: named(kind, name, ref.String())})
		return &out[len(out)-1]
	}
	for i := range pairs {
		for _, one := range [][2]string{{"a", "b"}, {"b", "a"}} {
			name := fmt.Sprintf("pair-%d-%s", i, one[0])
			good(v1.ProviderKind, name, meta(v1.ProviderKind, name)+definition(fmt.Sprintf("pair%d", i))).rival = fmt.Sprintf("pair-%d-%s", i, one[1])
		}
	}
	for i := range providers {
		name := fmt.Sprintf("provider-%d", i)
		good(v1.ProviderKind, name, meta(v1.ProviderKind, name)+definition(fmt.Sprintf("p%d", i)))
	}
	for i := range configurations {
		name := fmt.Sprintf("configuration-%d", i)
		good(v1.ConfigurationKind, name, meta(v1.ConfigurationKind, name)+composite(fmt.Sprintf("c%d", i)))
	}
	for i := range functions {
		name := fmt.Sprintf("function-%d", i)
		good(v1.FunctionKind, name, meta(v1.FunctionKind, name)+definition(fmt.Sprintf("f%d", i)))
	}
	return out
}

func named(kind, name, image string) v1.Package {
	p := v1.NewPackage(kind)
	p.SetName(name)
	p.PackageSpec().Package = image
	return p
}

func meta(kind, name string) string {
	return fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata: {name: %s}\n", kind, name)
}

// definition is a small definition in a group of its own.
func definition(group string) string {
	return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s}
spec:
  group: %[1]s
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`, group+"."+domain)
}

// composite is a composite resource definition and a composition for it.
func composite(group string) string {
	return fmt.Sprintf(`---
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: xthings.%[1]s}
spec:
  group: %[1]s
  names: {kind: XThing, plural: xthings}
  scope: Cluster
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: xthings.%[1]s}
spec:
  compositeTypeRef: {apiVersion: %[1]s/v1, kind: XThing}
  mode: Pipeline
  pipeline: [{step: one, functionRef: {name: function-0}}]
`, group+"."+domain)
}
