package packagediff_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/packagediff"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const configuration = `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: network}
spec:
  crossplane: {version: ">=v1.14.0"}
  dependsOn:
  - {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: registry.example.org/acme/provider, version: ">=v1.0.0"}
---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xnetworks.example.org}
spec:
  group: example.org
  names: {kind: XNetwork, plural: xnetworks}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {region: {type: string}}}}}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: network}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XNetwork}
  mode: Pipeline
  pipeline: [{step: a, functionRef: {name: f}}]
`

const provider = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: db}
spec:
  capabilities: [safe-start]
  controller:
    permissionRequests:
    - {apiGroups: [""], resources: [secrets], verbs: [get, list]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tables.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Table, plural: tables}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
`

func parse(t *testing.T, stream string) *xpkg.Package {
	t.Helper()
	pkg, err := xpkg.Read([]byte(stream), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func TestEveryPartOfAPackageIsCompared(t *testing.T) {
	for name, tc := range map[string]struct {
		from    string
		replace []string
		want    []string
	}{
		"nothing":        {configuration, nil, nil},
		"order of rules": {provider, []string{"[get, list]", "[list, get]"}, nil},
		"crossplane":     {configuration, []string{">=v1.14.0", ">=v2.0.0"}, []string{"needs care crossplane"}},
		"dependency": {configuration, []string{">=v1.0.0", ">=v2.0.0"}, []string{
			"needs care dependency registry.example.org/acme/provider",
		}},
		"other dependency": {configuration, []string{"acme/provider", "acme/other"}, []string{
			"safe dependency registry.example.org/acme/provider", "needs care dependency registry.example.org/acme/other",
		}},
		"field of an XRD": {configuration, []string{"region: {type: string}", "region: {type: integer}"}, []string{
			"breaking XRD xnetworks.example.org .spec.region",
		}},
		"composition removed": {configuration, []string{
			"metadata: {name: network}\nspec:\n  compositeTypeRef", "metadata: {name: other}\nspec:\n  compositeTypeRef",
		}, []string{"breaking Composition network", "safe Composition other"}},
		"composition changed": {configuration, []string{"step: a", "step: b"}, []string{"needs care Composition network"}},
		"capability":          {provider, []string{"[safe-start]", "[]"}, []string{"needs care capability safe-start"}},
		"permission": {provider, []string{"[get, list]", "[get]"}, []string{
			"needs care permission", "safe permission",
		}},
		"field of a CRD": {
			provider, []string{"spec: {type: object}", "spec: {type: object, required: [a], properties: {a: {type: string}}}"},
			[]string{"breaking CRD tables.example.org .spec.a", "safe CRD tables.example.org .spec.a"},
		},
		"another kind of pack": {provider, []string{
			"kind: Provider", "kind: Function",
			"  controller:\n    permissionRequests:\n    - {apiGroups: [\"\"], resources: [secrets], verbs: [get, list]}\n", "",
			"  capabilities: [safe-start]", "  capabilities: [composition]",
		}, []string{"breaking kind", "needs care capability safe-start", "safe capability composition", "safe permission"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := tc.from
			for i := 0; i < len(tc.replace); i += 2 {
				if !strings.Contains(text, tc.replace[i]) {
					t.Fatalf("the package does not contain %q", tc.replace[i])
				}
				text = strings.Replace(text, tc.replace[i], tc.replace[i+1], 1)
			}
			d, err := packagediff.Compare(parse(t, tc.from), parse(t, text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, lines(d)); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
			if d.Empty() != (len(tc.want) == 0) {
				t.Errorf("Empty() is %v", d.Empty())
			}
			worst := "safe"
			for _, class := range []string{"needs care", "breaking"} {
				for _, l := range tc.want {
					if strings.HasPrefix(l, class) {
						worst = class
					}
				}
			}
			if d.Class.String() != worst {
				t.Errorf("class %s, want %s", d.Class, worst)
			}
		})
	}
}

// TestLabels compares the labels and annotations of a CRD and of an XRD.
func TestLabels(t *testing.T) {
	for name, text := range map[string]string{"XRD": configuration, "CRD": provider} {
		marker := map[string]string{
			"XRD": "kind: CompositeResourceDefinition\nmetadata: {", "CRD": "kind: CustomResourceDefinition\nmetadata: {",
		}[name]
		if !strings.Contains(text, marker) {
			t.Fatalf("%s has no metadata", name)
		}
		with := func(metadata string) *xpkg.Package {
			return parse(t, strings.Replace(text, marker, marker+metadata, 1))
		}
		for _, tc := range []struct {
			from, to string
			want     []string
		}{
			{"labels: {a: x}, ", "labels: {a: x}, ", nil},
			{"", "labels: {a: x}, ", []string{"safe label a"}},
			{"labels: {a: x}, ", "", []string{"needs care label a"}},
			{"labels: {a: x, b: 1}, ", "labels: {a: z, b: 1}, annotations: {c: d}, ", []string{
				"needs care label a", "safe annotation c",
			}},
			{"annotations: {c: d}, ", "annotations: {c: e}, ", []string{"safe annotation c"}},
			{"annotations: {controller-gen.kubebuilder.io/version: v1}, ", "annotations: {controller-gen.kubebuilder.io/version: v2}, ", nil},
		} {
			d, err := packagediff.Compare(with(tc.from), with(tc.to))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range slices.Concat(d.CRDs.Changed, d.XRDs.Changed) {
				for _, change := range c.Changes {
					got = append(got, change.Class.String()+" "+change.Subject)
				}
			}
			if !slices.Equal(got, tc.want) || d.Empty() != (len(tc.want) == 0) {
				t.Errorf("%s: from %q to %q: %q, want %q", name, tc.from, tc.to, got, tc.want)
			}
		}
	}
}

func TestEveryFieldOfAnXRDIsCompared(t *testing.T) {
	xrd := func(version, fields string) *xpkg.Package {
		text := strings.Replace(
			configuration, "  names: {kind: XNetwork, plural: xnetworks}\n",
			"  names: {kind: XNetwork, plural: xnetworks}\n  "+fields+"\n", 1,
		)
		return parse(t, strings.Replace(
			text, "apiVersion: apiextensions.crossplane.io/v1\nkind: CompositeResourceDefinition",
			"apiVersion: apiextensions.crossplane.io/"+version+"\nkind: CompositeResourceDefinition", 1,
		))
	}
	const claims = "claimNames: {kind: Network, plural: networks}"
	for name, tc := range map[string]struct {
		versions      [2]string
		from, to      string
		want, reverse []string
	}{
		"claims": {[2]string{"v1", "v1"}, "", claims, []string{"safe ClaimsAdded claimNames"}, []string{
			"breaking ClaimsRemoved claimNames",
		}},
		"kind of claims": {
			[2]string{"v1", "v1"}, claims, "claimNames: {kind: Net, plural: nets}",
			[]string{"breaking ClaimsChanged claimNames"}, []string{"breaking ClaimsChanged claimNames"},
		},
		"aliases of claims": {
			[2]string{"v1", "v1"}, claims, "claimNames: {kind: Network, plural: networks, shortNames: [net]}",
			[]string{"needs care ClaimsChanged claimNames"}, []string{"needs care ClaimsChanged claimNames"},
		},
		"default aliases": {
			[2]string{"v1", "v1"}, claims,
			"claimNames: {kind: Network, plural: networks, singular: network, listKind: NetworkList, shortNames: []}", nil, nil,
		},
		"connection key": {[2]string{"v1", "v1"}, "connectionSecretKeys: [a, b]", "connectionSecretKeys: [a]", []string{
			"breaking ConnectionKeysChanged connectionSecretKeys",
		}, []string{"safe ConnectionKeysChanged connectionSecretKeys"}},
		"connection keys": {[2]string{"v1", "v1"}, "", "connectionSecretKeys: [a]", []string{
			"needs care ConnectionKeysChanged connectionSecretKeys",
		}, []string{"safe ConnectionKeysChanged connectionSecretKeys"}},
		"order of keys": {
			[2]string{"v1", "v1"}, "connectionSecretKeys: [a, b]", "connectionSecretKeys: [b, a]", nil, nil,
		},
		"enforced": {[2]string{"v1", "v1"}, "", "enforcedCompositionRef: {name: c}", []string{
			"needs care CompositionChanged enforcedCompositionRef",
		}, []string{"safe CompositionChanged enforcedCompositionRef"}},
		"default": {[2]string{"v1", "v1"}, "", "defaultCompositionRef: {name: c}", []string{
			"needs care CompositionChanged defaultCompositionRef",
		}, []string{"needs care CompositionChanged defaultCompositionRef"}},
		"update policy": {[2]string{"v1", "v1"}, "", "defaultCompositionUpdatePolicy: Manual", []string{
			"needs care CompositionPolicyChanged defaultCompositionUpdatePolicy",
		}, []string{"needs care CompositionPolicyChanged defaultCompositionUpdatePolicy"}},
		"default policies": {
			[2]string{"v1", "v1"}, "", "defaultCompositionUpdatePolicy: Automatic\n  defaultCompositeDeletePolicy: Background",
			nil, nil,
		},
		"deletion policy": {[2]string{"v1", "v1"}, "", "defaultCompositeDeletePolicy: Foreground", []string{
			"needs care CompositionPolicyChanged defaultCompositeDeletePolicy",
		}, []string{"needs care CompositionPolicyChanged defaultCompositeDeletePolicy"}},
		"labels": {
			[2]string{"v1", "v1"}, "", "metadata: {labels: {a: b}}", []string{"safe ObjectMetadataChanged metadata"},
			[]string{"safe ObjectMetadataChanged metadata"},
		},
		"default scope": {[2]string{"v2", "v2"}, "", "scope: Namespaced", nil, nil},
		"scope": {[2]string{"v2", "v2"}, "", "scope: Cluster", []string{"breaking ScopeChanged"}, []string{
			"breaking ScopeChanged",
		}},
		"legacy scope": {[2]string{"v1", "v2"}, "", "scope: LegacyCluster", nil, nil},
		"scope of version 2": {[2]string{"v1", "v2"}, "", "", []string{"breaking ScopeChanged"}, []string{
			"breaking ScopeChanged",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := xrd(tc.versions[0], tc.from), xrd(tc.versions[1], tc.to)
			for _, direction := range []struct {
				from, to *xpkg.Package
				want     []string
			}{{from, to, tc.want}, {to, from, tc.reverse}} {
				d, err := packagediff.Compare(direction.from, direction.to)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, c := range d.XRDs.Changed {
					for _, change := range c.Changes {
						got = append(got, strings.TrimSpace(change.Class.String()+" "+string(change.Type)+" "+change.Subject))
					}
				}
				if diff := cmp.Diff(direction.want, got); diff != "" || d.Empty() != (len(got) == 0) ||
					d.XRDs.Unchanged+len(d.XRDs.Changed) != 1 {
					t.Errorf("%+v (-want +got):\n%s", d.XRDs, diff)
				}
			}
		})
	}
}

// lines returns a line for each change: its class and its subject.
func lines(d packagediff.Diff) []string {
	var out []string
	for _, c := range d.Metadata {
		out = append(out, c.Class.String()+" "+c.Subject)
	}
	for _, c := range d.CRDs.Changed {
		for _, change := range c.Changes {
			out = append(out, change.Class.String()+" CRD "+c.Name+" "+change.Path)
		}
	}
	for _, c := range d.XRDs.Changed {
		for _, change := range c.Changes {
			out = append(out, change.Class.String()+" XRD "+c.Name+" "+change.Path)
		}
	}
	for _, c := range d.Objects {
		out = append(out, c.Class.String()+" "+c.Subject)
	}
	return out
}
