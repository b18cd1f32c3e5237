package docs

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestPackageHasSchemasOfXRDsAndClaims(t *testing.T) {
	pkg, err := xpkg.Read([]byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform, annotations: {meta.crossplane.io/readme: "# Platform"}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xnetworks.acme.example.org}
spec:
  group: acme.example.org
  names: {kind: XNetwork, plural: xnetworks}
  claimNames: {kind: Network, plural: networks}
  versions: [{name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}]
`), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := FromPackage(pkg)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range p.Kinds {
		got = append(got, fmt.Sprintf("%s %s %t", k.Kind, k.Role, bytes.Contains(k.CRD, []byte("openAPIV3Schema"))))
	}
	if want := []string{"Network c true", "XNetwork x true"}; !reflect.DeepEqual(got, want) || p.Readme != "# Platform" {
		t.Errorf("got %q", got)
	}
}
