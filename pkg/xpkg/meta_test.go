package xpkg

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// metaOf reads a package of nothing but its metadata.
func metaOf(t *testing.T, text string) (Meta, []Finding) {
	t.Helper()
	pkg, err := Read([]byte(text), ReadOptions{})
	if err != nil {
		return Meta{}, Findings(err)
	}
	return pkg.Meta, pkg.Findings
}

func TestMetaOfEachAge(t *testing.T) {
	rule := rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"r"}, Verbs: []string{"*"}}
	for name, c := range map[string]struct {
		in   string
		want Meta
	}{
		"today": {`
apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: c
  labels: {l: m}
  annotations: {a: b}
spec:
  crossplane: {version: ">=v1.14.0-0"}
  dependsOn:
  - {apiVersion: pkg.crossplane.io/v1, kind: Function, package: x/f, version: ">=v0.1.0,<v1"}
  - {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: x/p, version: "sha256:` + strings.Repeat("0a", 32) + `"}
  capabilities: [SafeStart]
`, Meta{
			APIVersion: "meta.pkg.crossplane.io/v1", Kind: Configuration, Name: "c",
			Labels: map[string]string{"l": "m"}, Annotations: map[string]string{"a": "b"}, Crossplane: ">=v1.14.0-0",
			DependsOn: []dependency.Dependency{
				{Package: "x/f", APIVersion: "pkg.crossplane.io/v1", Kind: string(Function), Constraint: ">=v0.1.0,<v1"},
				{Package: "x/p", APIVersion: "pkg.crossplane.io/v1", Kind: string(Provider), Constraint: "sha256:" +
					strings.Repeat("0a", 32)},
			},
			Capabilities: []string{"SafeStart"},
		}},
		"short dependencies": {`
apiVersion: meta.pkg.crossplane.io/v1beta1
kind: Configuration
metadata: {name: c}
spec:
  dependsOn:
  - {provider: x/p, version: v0.7.0}
  - {configuration: x/c, version: v1}
  - {function: x/f, version: ">= 0.0.0"}
`, Meta{
			APIVersion: "meta.pkg.crossplane.io/v1beta1", Kind: Configuration, Name: "c",
			DependsOn: []dependency.Dependency{
				{Package: "x/p", APIVersion: "pkg.crossplane.io/v1", Kind: string(Provider), Constraint: "v0.7.0"},
				{Package: "x/c", APIVersion: "pkg.crossplane.io/v1", Kind: string(Configuration), Constraint: "v1"},
				{Package: "x/f", APIVersion: "pkg.crossplane.io/v1", Kind: string(Function), Constraint: ">= 0.0.0"},
			},
		}},
		"kinds": {`
apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: c}
spec:
  dependsOn:
  - crd: buckets.s3.example.org/v1beta1
  - {package: x/p, version: v0.11.1}
  - crd: "*.ec2.example.org"
  - crd: buckets.s3.example.org/v1beta1
`, Meta{
			APIVersion: "meta.pkg.crossplane.io/v1", Kind: Configuration, Name: "c",
			DependsOn: []dependency.Dependency{{Package: "x/p", Constraint: "v0.11.1"}},
			Kinds: []dependency.KindRef{{Name: "buckets", Group: "s3.example.org", Version: "v1beta1"}, {
				Name: "*", Group: "ec2.example.org",
			}},
		}},
		"a dependency of unknown kind": {`
apiVersion: meta.pkg.crossplane.io/v1alpha1
kind: Configuration
metadata: {name: c}
spec: {dependsOn: [{package: x/p, version: v0.11.1}]}
`, Meta{
			APIVersion: "meta.pkg.crossplane.io/v1alpha1", Kind: Configuration, Name: "c",
			DependsOn: []dependency.Dependency{{Package: "x/p", Constraint: "v0.11.1"}},
		}},
		"the format document": {`
apiVersion: meta.pkg.ibm.crossplane.io/v1alpha1
kind: Provider
metadata: {name: p}
spec:
  controller: {image: x/controller:v1}
  crossplane: v0.13.0
  permissionRequests: [{apiGroups: [g], resources: [r], verbs: ["*"]}]
`, Meta{
			APIVersion: "meta.pkg.ibm.crossplane.io/v1alpha1", Kind: Provider, Name: "p", Crossplane: "v0.13.0",
			ControllerImage: "x/controller:v1", PermissionRequests: []rbacv1.PolicyRule{rule},
		}},
		"nested permissions": {`
apiVersion: meta.pkg.crossplane.io/v1alpha1
kind: Provider
metadata: {name: p}
spec:
  controller: {image: i, permissionRequests: [{apiGroups: [g], resources: [r], verbs: ["*"]}]}
`, Meta{
			APIVersion: "meta.pkg.crossplane.io/v1alpha1", Kind: Provider, Name: "p",
			ControllerImage: "i", PermissionRequests: []rbacv1.PolicyRule{rule},
		}},
		"a function without capabilities": {`
apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata: {name: f}
`, Meta{APIVersion: "meta.pkg.crossplane.io/v1", Kind: Function, Name: "f", Capabilities: []string{"composition"}}},
		"a function that wants none": {`
apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata: {name: f}
spec: {capabilities: []}
`, Meta{APIVersion: "meta.pkg.crossplane.io/v1", Kind: Function, Name: "f", Capabilities: []string{}}},
		"written by other tools": {`
apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: p, creationTimestamp: null}
spec: {crossplane: {version: ""}}
status: {}
`, Meta{APIVersion: "meta.pkg.crossplane.io/v1", Kind: Provider, Name: "p"}},
		"no constraint": {`
apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: p}
spec: {crossplane: }
`, Meta{APIVersion: "meta.pkg.crossplane.io/v1", Kind: Provider, Name: "p"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, findings := metaOf(t, c.in)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Meta{}, "Raw")); diff != "" {
				t.Error(diff)
			}
			if len(findings) > 0 {
				t.Errorf("findings: %v", findings)
			}
			if string(got.Raw.Raw) != c.in {
				t.Errorf("raw is %q", got.Raw.Raw)
			}
		})
	}
}

// hardening: D11, E3
func TestMetaFaults(t *testing.T) {
	head := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p}\n"
	for name, c := range map[string]struct {
		in   string
		code string
		line int
		want string
	}{
		"spec is a string": {head + "spec: x\n", "MalformedMeta", 4, "spec is a string, want a mapping"},
		"name is a number": {
			"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: 1}\n", "MalformedMeta", 3,
			"metadata.name is a number, want a string",
		},
		"capabilities": {head +
			"spec:\n  capabilities: a\n", "MalformedMeta", 5, "spec.capabilities is a string, want a list"},
		"crossplane is a list": {head +
			"spec:\n  crossplane: []\n", "MalformedMeta", 5, "spec.crossplane is a list, want a mapping"},
		"version is a number": {head +
			"spec:\n  crossplane:\n    version: 1\n", "MalformedMeta", 6, "spec.crossplane.version is a number, want a string"},
		"two packages": {
			head + "spec:\n  dependsOn:\n  - {provider: a, package: b, version: v1}\n", "MalformedMeta", 6,
			"spec.dependsOn[0] names 2 packages; exactly one is required",
		},
		"a kind with a version": {
			head + "spec:\n  dependsOn:\n  - {crd: Bucket.example.org/v1, version: v1}\n", "MalformedMeta", 6,
			"spec.dependsOn[0] has other fields besides crd; the API version follows the kind after a slash",
		},
		"a kind and a package": {
			head + "spec:\n  dependsOn:\n  - {crd: Bucket.example.org, package: x/p}\n", "MalformedMeta", 6,
			"spec.dependsOn[0] has other fields besides crd; the API version follows the kind after a slash",
		},
		"a kind without a group": {
			head + "spec:\n  dependsOn:\n  - crd: Bucket\n", "MalformedMeta", 6,
			"spec.dependsOn[0].crd: \"Bucket\" is not a kind: the API group is missing; write KIND.GROUP, such as Bucket.s3.aws.upbound.io",
		},
		"credentials": {
			head + "spec:\n  dependsOn:\n  - {provider: 'user:pw@r.example.org/a', version: v1}\n", "MalformedMeta", 6,
			"spec.dependsOn[0] names \"***@r.example.org/a\" with credentials, which every user of the package could read",
		},
		"no package": {
			head + "spec:\n  dependsOn:\n  - {version: v1}\n", "MalformedMeta", 6,
			"spec.dependsOn[0] names 0 packages; exactly one is required",
		},
		"constraint": {head + "spec:\n  dependsOn:\n  - provider: a\n    version: >=v1 ||\n", "InvalidYAML", 7, ""},
		"quoted constraint": {head + "spec:\n  dependsOn:\n  - provider: a\n    version: '>=v1 ||'\n", "InvalidConstraint", 7,
			`spec.dependsOn[0].version: ">=v1 ||" is not a version constraint: a version is missing at character 8`},
		"misspelled": {
			"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provder\nmetadata: {name: p}\n", "UnsupportedMeta", 1,
			`metadata object Provder of meta.pkg.crossplane.io/v1 is not known, did you mean "Provider"`,
		},
		"lower case": {
			"apiVersion: meta.pkg.crossplane.io/v1\nkind: function\nmetadata: {name: p}\n", "UnsupportedMeta", 1,
			`metadata object function of meta.pkg.crossplane.io/v1 is not known, did you mean "Function"`,
		},
		"future": {
			"apiVersion: meta.pkg.crossplane.io/v2\nkind: Provider\nmetadata: {name: p}\n", "UnsupportedMeta", 1,
			"metadata object Provider of meta.pkg.crossplane.io/v2 is not known",
		},
		"typo": {head +
			"spec:\n  dependOn: []\n", "UnknownMetaField", 5, `unknown field "spec.dependOn", did you mean "dependsOn"`},
		"other case": {head +
			"spec:\n  DependsOn: []\n", "UnknownMetaField", 5, `unknown field "spec.DependsOn", did you mean "dependsOn"`},
		"unknown": {head + "spec:\n  something: []\n", "UnknownMetaField", 5, `unknown field "spec.something"`},
		"deep": {
			head + "spec:\n  crossplane: {versoin: v1}\n", "UnknownMetaField", 5,
			`unknown field "spec.crossplane.versoin", did you mean "version"`,
		},
		"request of no group": {head +
			"spec:\n  controller:\n    permissionRequests:\n    - {resources: [pods], verbs: [get]}\n",
			"InvalidPermissionRequest", 7,
			"spec.controller.permissionRequests[0] has no apiGroups, so it requests nothing"},
		"request of nothing": {head +
			"spec:\n  permissionRequests:\n  - {nonResourceURLs: [/x], verbs: [get]}\n  - {apiGroups: ['']}\n",
			"InvalidPermissionRequest", 7,
			"spec.permissionRequests[1] has no resources and no verbs, so it requests nothing"},
		"in a list": {
			head + "spec:\n  dependsOn:\n  - {provider: a, version: v1, verison: v2}\n", "UnknownMetaField", 6,
			`unknown field "spec.dependsOn[0].verison", did you mean "version"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := metaOf(t, c.in)
			i := slices.IndexFunc(findings, func(f Finding) bool { return f.Code.Name == c.code })
			if i < 0 {
				t.Fatalf("no %s in %v", c.code, findings)
			}
			f := findings[i]
			if f.Line != c.line || c.want != "" && f.Message != c.want {
				t.Errorf("got %s at line %d: %s", f.Code.Name, f.Line, f.Message)
			}
		})
	}
}

// hardening: E5
func TestConstraintShowsTheFault(t *testing.T) {
	_, findings := metaOf(t, providerMeta+"spec: {crossplane: '>=v1 <v2 ||'}\n")
	if len(findings) != 1 || findings[0].Excerpt != "\">=v1 <v2 ||\"\n            ^" {
		t.Errorf("got %+v", findings)
	}
}

// hardening: E12
func TestPermissionLimit(t *testing.T) {
	text := providerMeta + "spec:\n  permissionRequests:\n" + strings.Repeat("  - {verbs: [get]}\n", 3)
	if _, err := Read([]byte(text), ReadOptions{Limits: Limits{
		PermissionRules: 2,
	}}); !errors.Is(err, ErrTooManyPermissions) {
		t.Errorf("got %v", err)
	}
}

func TestCapabilities(t *testing.T) {
	m := Meta{Capabilities: []string{"SafeStart", "comp_osition"}}
	for name, want := range map[string]bool{
		CapabilitySafeStart: true, "safestart": true, CapabilityComposition: true, CapabilityOperation: false,
	} {
		if got := m.HasCapability(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzMeta(f *testing.F) {
	f.Add("spec:\n  crossplane: v1\n  dependsOn:\n  - {provider: a, version: '>=v1'}\n  capabilities: [a]\n")
	f.Add("spec:\n  controller: {image: x, permissionRequests: [{verbs: [a]}]}\n  dependOn: {}\n")
	f.Fuzz(func(t *testing.T, tail string) {
		pkg, err := Read([]byte(providerMeta+tail), ReadOptions{Limits: Limits{Depth: 50, Nodes: 1000}})
		if err != nil {
			return
		}
		for _, d := range pkg.Meta.DependsOn {
			if d.Package == "" || version.CheckConstraint(d.Constraint, true) != nil {
				t.Fatalf("dependency %+v", d)
			}
		}
	})
}
