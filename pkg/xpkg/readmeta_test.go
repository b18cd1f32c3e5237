package xpkg

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

const metaLast = `apiVersion: example.org/v1
kind: Thing
metadata: {name: meta.pkg.crossplane.io}
---
apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform}
spec:
  dependsOn:
  - provider: xpkg.test/a/b
    version: ">=v1.0.0"
---
spec: [this is, "no object"]
`

func TestReadMeta(t *testing.T) {
	meta, err := ReadMeta([]byte(metaLast), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []dependency.Dependency{{
		Package: "xpkg.test/a/b", APIVersion: "pkg.crossplane.io/v1", Kind: string(Provider), Constraint: ">=v1.0.0",
	}}
	if diff := cmp.Diff(want, meta.DependsOn); diff != "" || meta.Kind != Configuration || meta.Name != "platform" {
		t.Errorf("%+v\n%s", meta, diff)
	}
}

// hardening: E1
func TestReadMetaRefuses(t *testing.T) {
	for name, c := range map[string]struct{ stream, code string }{
		"none":       {"apiVersion: v1\nkind: Thing\n", "NoMeta"},
		"empty":      {"", "NoMeta"},
		"constraint": {strings.Replace(metaLast, ">=v1.0.0", ">>1", 1), "InvalidConstraint"},
		"unsupported": {
			strings.Replace(metaLast, "crossplane.io/v1\nkind: Configuration", "crossplane.io/v9\nkind: Configuration", 1),
			"UnsupportedMeta",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadMeta([]byte(c.stream), ReadOptions{})
			if all := Findings(err); len(all) != 1 || all[0].Code.Name != c.code {
				t.Errorf("%v", err)
			}
		})
	}
}

// FuzzReadMeta compares ReadMeta with Read.
func FuzzReadMeta(f *testing.F) {
	f.Add([]byte(metaLast))
	f.Add([]byte("apiVersion: \"\\u006deta.pkg.crossplane.io/v1\"\nkind: Function\nmetadata: {name: f}\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		pkg, err := Read(stream, ReadOptions{})
		if err != nil {
			_, _ = ReadMeta(stream, ReadOptions{})
			return
		}
		meta, err := ReadMeta(stream, ReadOptions{})
		if err != nil {
			t.Fatalf("Read takes it, and ReadMeta does not: %v", err)
		}
		if diff := cmp.Diff(pkg.Meta.DependsOn, meta.DependsOn); diff != "" || pkg.Meta.Name != meta.Name {
			t.Error(diff)
		}
	})
}
