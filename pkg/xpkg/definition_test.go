package xpkg

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDefinitionsOfObjects(t *testing.T) {
	served := []DefinedVersion{{Name: "v1", Served: true, Storage: true}}
	for name, c := range map[string]struct {
		kind, object string
		want         []Definition
	}{
		"CRD": {
			"Provider", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: buckets.s3.acme.org}, spec: {group: s3.acme.org,
scope: Cluster, names: {kind: Bucket, plural: buckets, singular: bucket, shortNames: [bk]}, versions: [{name: v1, served: true, storage: true,
schema: {openAPIV3Schema: {properties: {served: {type: object}}}}}, {name: v1alpha1, deprecated: true, served: false, storage: false}]}}`,
			[]Definition{{Group: "s3.acme.org", Kind: "Bucket", Plural: "buckets", Singular: "bucket", ShortNames: []string{
				"bk",
			}, Scope: "Cluster",
				Versions: []DefinedVersion{{Name: "v1", Served: true, Storage: true}, {Name: "v1alpha1", Deprecated: true}}}},
		},
		"managed resource": {
			"Provider", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: buckets.acme.org}, spec: {group: acme.org,
scope: Cluster, names: {kind: Bucket, plural: buckets, categories: [crossplane, managed, aws]}, versions: [{name: v1, served: true, storage: true}]}}`,
			[]Definition{{
				Group: "acme.org", Kind: "Bucket", Plural: "buckets", Singular: "bucket", Scope: "Cluster", Managed: true,
				Versions: served,
			}},
		},
		"v1beta1 with one version": {
			"Provider", `{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: buckets.acme.org},
spec: {group: acme.org, scope: Namespaced, names: {kind: Bucket, plural: buckets}, version: v1}}`,
			[]Definition{{
				Group: "acme.org", Kind: "Bucket", Plural: "buckets", Singular: "bucket", Scope: "Namespaced", Versions: served,
			}},
		},
		"XRD with a claim": {
			"Configuration", `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositeResourceDefinition, metadata: {name: xnets.acme.org},
spec: {group: acme.org, names: {kind: XNet, plural: xnets}, claimNames: {kind: Net, plural: nets}, versions: [{name: v1, served: true, referenceable: true}]}}`,
			[]Definition{
				{Group: "acme.org", Kind: "XNet", Plural: "xnets", Singular: "xnet", Scope: "Cluster", Versions: served},
				{Group: "acme.org", Kind: "Net", Plural: "nets", Singular: "net", Scope: "Namespaced", Claim: true, Versions: served},
			},
		},
		"XRD of v2": {
			"Configuration", `{apiVersion: apiextensions.crossplane.io/v2, kind: CompositeResourceDefinition, metadata: {name: nets.acme.org},
spec: {group: acme.org, names: {kind: Net, plural: nets}, versions: [{name: v1, served: true, referenceable: true}]}}`,
			[]Definition{{
				Group: "acme.org", Kind: "Net", Plural: "nets", Singular: "net", Scope: "Namespaced", Versions: served,
			}},
		},
		"composition": {
			"Configuration",
			"{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: net}, spec: {names: {kind: X}}}",
			nil,
		},
		"wrong types": {
			"Provider",
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, spec: {group: [], names: 1, versions: {}}}",
			nil,
		},
		"without a spec": {
			"Provider", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}}", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pkg, err := Read(
				[]byte("{apiVersion: meta.pkg.crossplane.io/v1, kind: "+c.kind+", metadata: {name: p}}\n---\n"+c.object+"\n"),
				ReadOptions{},
			)
			if err != nil {
				t.Fatal(err)
			}
			got, err := pkg.Objects[0].Definitions()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
