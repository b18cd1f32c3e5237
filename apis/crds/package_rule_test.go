package crds

import (
	"fmt"
	"strings"
	"testing"
)

const digest = "sha256:1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"

// TestPackageRule is the table of references that spec.package takes and
// refuses.
func TestPackageRule(t *testing.T) {
	long := "registry.example.com/repo/" + strings.Repeat("a", 1024) + ":v1"
	cases := []struct {
		name, ref, policy string
		ok                bool
	}{
		{"tag", "xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0", "", true},
		{"digest", "registry.example.com/repo/package@" + digest, "", true},
		{"tag and digest", "registry.example.com/repo/package:v1@" + digest, "", true},
		{"one part of a repository", "registry.example.com/package:v1", "", true},
		{"port", "registry.example.com:5000/repo/package:v1", "", true},
		{"address with port", "127.0.0.1:15000/examples/provider-hello:v0.1.0", "", true},
		{"localhost", "localhost/package:v1", "", true},
		{"localhost with port", "localhost:5000/package:v1", "", true},
		{"underscore", "registry.example.com/my_org/my__package:v1_2", "", true},
		{"capitals in a tag", "registry.example.com/repo/package:V1.0.0-RC", "", true},
		{"Always", "registry.example.com/repo/package:v1", "Always", true},

		{"no registry", "crossplane/provider-nop:v0.4.0", "", false},
		{"no registry, Always", "crossplane/provider-nop:v0.4.0", "Always", false},
		{"no tag", "registry.example.com/repo/package", "", false},
		{"no repository", "registry.example.com:v1", "", false},
		{"empty tag", "registry.example.com/repo/package:", "", false},
		{"empty", "", "", false},
		{"short digest", "registry.example.com/repo/package@sha256:1234", "", false},
		{"other digest", "registry.example.com/repo/package@md5:" + strings.Repeat("0", 32), "", false},
		{"scheme", "https://registry.example.com/repo/package:v1", "", false},
		{"host without a dot", "registry:5000/repo/package:v1", "", false},
		{"capitals in a repository", "registry.example.com/Repo/package:v1", "", false},
		{"space", "registry.example.com/repo/package:v1 ", "", false},
		{"line break", "registry.example.com/repo/package:v1\n", "", false},
		{"tag that is too long", "registry.example.com/repo/package:" + strings.Repeat("a", 129), "", false},
		{"too long", long, "", false},

		{"Never takes a name in the cache", "mycoolpkg", "Never", true},
		{"Never takes a reference", "registry.example.com/repo/package:v1", "Never", true},
		{"Never and empty", "", "Never", false},
		{"Never and too long", long, "Never", false},
	}
	crds := ours(t, Packages)
	for _, kind := range []string{"Provider", "Configuration", "Function"} {
		crd := crds[strings.ToLower(kind)+"s.pkg.crossplane.io"]
		for _, c := range cases {
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				spec := map[string]any{"package": c.ref}
				if c.policy != "" {
					spec["packagePullPolicy"] = c.policy
				}
				errs := submit(t, crd, "v1", map[string]any{
					"apiVersion": "pkg.crossplane.io/v1", "kind": kind,
					"metadata": map[string]any{"name": "p"}, "spec": spec,
				})
				if c.ok != (len(errs) == 0) {
					t.Errorf("%q: accepted is %v, want %v: %v", c.ref, !c.ok, c.ok, errs)
				}
				for _, err := range errs {
					if err.Field != "spec.package" {
						t.Errorf("the error is about %s, want spec.package: %v", err.Field, err)
					}
				}
			})
		}
	}
}

// TestPackageDefaults proves the defaults that an API server sets (packages guide, "Installing a
// Package").
func TestPackageDefaults(t *testing.T) {
	p := parse(t, `{apiVersion: pkg.crossplane.io/v1, kind: Provider, metadata: {name: p}, spec: {package: "r.io/p:v1"}}`)
	if errs := submit(t, ours(t, Packages)["providers.pkg.crossplane.io"], "v1", p); len(errs) > 0 {
		t.Fatal(errs)
	}
	want := parse(t, `
package: r.io/p:v1
packagePullPolicy: IfNotPresent
revisionActivationPolicy: Automatic
revisionHistoryLimit: 1
ignoreCrossplaneConstraints: false
skipDependencyResolution: false
runtimeConfigRef: {apiVersion: pkg.crossplane.io/v1beta1, kind: DeploymentRuntimeConfig, name: default}`)
	if got := fmt.Sprint(p["spec"]); got != fmt.Sprint(want) {
		t.Errorf("spec is\n%s, want\n%s", got, fmt.Sprint(want))
	}
}

// TestImageConfigRule shows the rule of upstream's that we keep.
func TestImageConfigRule(t *testing.T) {
	crd := ours(t, Packages)["imageconfigs.pkg.crossplane.io"]
	for doc, ok := range map[string]bool{
		`{spec: {matchImages: [{prefix: r.io/}]}}`:                  true,
		`{spec: {matchImages: []}}`:                                 false,
		`{spec: {matchImages: [{prefix: r.io/, type: Suffix}]}}`:    false,
		`{spec: {matchImages: [{type: Prefix}]}}`:                   false,
		`{spec: {matchImages: [{prefix: a}], rewriteImage: {}}}`:    false,
		`{spec: {matchImages: [{prefix: a}], runtime: {}}}`:         true,
		`{spec: {matchImages: [{prefix: a}], verification: {}}}`:    false,
		`{spec: {matchImages: [{prefix: a}], registry: {}}}`:        true,
		`{spec: {registry: {authentication: {pullSecretRef: {}}}}}`: false,

		`{spec: {matchImages: [{prefix: a}], registry: {caBundle: pem, plainHTTP: true, mirrors: [{prefix: b}]}}}`: true,
		`{spec: {matchImages: [{prefix: a}], registry: {mirrors: [{prefix: ""}]}}}`:                                false,
		`{spec: {matchImages: [{prefix: a}], registry: {mirrors: [{}]}}}`:                                          false,
	} {
		if errs := submit(t, crd, "v1beta1", parse(t, doc)); ok != (len(errs) == 0) {
			t.Errorf("%s: accepted is %v, want %v: %v", doc, !ok, ok, errs)
		}
	}
}
