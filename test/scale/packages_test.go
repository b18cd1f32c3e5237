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

// domain is the suffix of the API groups of all packages.
const domain = "scale.test"

// The numbers of packages: 200 in all, ten of which cannot be installed. Of each pair that contains the
// same CRD one is installed.
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

// expected is one package and its expected result.
type expected struct {
	pkg v1.Package
	// fails is the expected error code; nil if the package is installed.
	fails *errcode.Code
	// rival is the name of the package that contains the same object.
	rival string
}

// refused is an address that refuses connections at once.
const refused = "127.0.0.1:1"

// conflict is the error code of the package of a pair that is not installed.
var conflict = apply.ErrRefused

// everything publishes all packages and returns the packages to create. Packages that fail come first,
// so all others come after them.
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
	fail(withoutTag, "without-tag", registry+"/scale/without-#:v1", corev1.PullIfNotPresent, remote.ErrRepositoryNotFound)
	fail(unreachable, "unreachable", refused+
		"/scale/unreachable-#:v1", corev1.PullIfNotPresent, remote.ErrRegistryUnavailable)
	good := func(kind, name, stream string) *expected {
		ref := publish.Stream(t, registry, "scale/"+name, "v1.0.0", []byte(stream))
		out = append(out, expected{pkg: named(kind, name, ref.String())})
		return &out[len(out)-1]
	}
	for i := range pairs {
		for _, one := range [][2]string{{"a", "b"}, {"b", "a"}} {
			name := fmt.Sprintf("pair-%d-%s", i, one[0])
			good(v1.ProviderKind, name, meta(v1.ProviderKind, name)+definition(fmt.Sprintf("pair%d", i))).
				rival = fmt.Sprintf("pair-%d-%s", i, one[1])
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

// definition returns a small CRD with its own group.
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

// composite returns an XRD and a Composition for it.
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
