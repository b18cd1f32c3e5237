package graph

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

func TestCheck(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for name, tc := range map[string]struct {
		installed, needed, constraint string
		want                          State
	}{
		"within the range": {
			"registry.example.com/a:v1.2.0", "registry.example.com/a", ">=v1.1.0", Satisfied,
		},
		"below it": {
			"registry.example.com/a:v1.0.0", "registry.example.com/a", ">=v1.1.0", Incompatible,
		},
		"a preview is in no range": {
			"registry.example.com/a:v1.2.0-rc.1", "registry.example.com/a", ">=v1.1.0", Incompatible,
		},
		"a preview is in a range of them": {
			"registry.example.com/a:v1.2.0-rc.1", "registry.example.com/a", ">=v1.1.0-0", Satisfied,
		},
		"no constraint":      {"registry.example.com/a:anything", "registry.example.com/a", "", Satisfied},
		"another repository": {"registry.example.com/b:v1.2.0", "registry.example.com/a", ">=v1.1.0", Missing},
		"another registry":   {"mirror.example.com/a:v1.2.0", "registry.example.com/a", ">=v1.1.0", Missing},
		"another spelling of the host": {
			"Registry.Example.Com/a:v1.2.0", "registry.example.com/a", ">=v1.1.0", Satisfied,
		},
		"a tag and its digest": {"registry.example.com/a:v1.2.0@" +
			digest, "registry.example.com/a", ">=v1.1.0", Satisfied},
		"the digest": {"registry.example.com/a:v1.2.0@" +
			digest, "registry.example.com/a", digest, Satisfied},
		"a digest, and a tag is installed": {
			"registry.example.com/a:v1.2.0", "registry.example.com/a", digest, Incompatible,
		},
		"a range, and a digest is there": {"registry.example.com/a@" +
			digest, "registry.example.com/a", ">=v1.1.0", Incompatible},
		"a tag that is no version": {
			"registry.example.com/a:latest", "registry.example.com/a", ">=v1.1.0", Incompatible,
		},
		"what is installed is no reference": {"boats", "registry.example.com/a", ">=v1.1.0", Missing},
	} {
		t.Run(name, func(t *testing.T) {
			p := v1.NewPackage(v1.ProviderKind)
			p.SetName("a")
			p.PackageSpec().Package = tc.installed
			var nodes []Node
			if n, ok := NodeFromPackage(p, nil); ok {
				nodes = append(nodes, n)
			}
			got := New(nodes, nil).
				Check(lockfile.Dependencies([]dependency.Dependency{{Package: tc.needed, Constraint: tc.constraint}}))
			if len(got) != 1 || got[0].State != tc.want {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
			if (got[0].Installed.Name == "") != (tc.want == Missing) {
				t.Errorf("installed at %+v", got[0].Installed)
			}
		})
	}
}

func TestCheckOptional(t *testing.T) {
	g := graph("a")
	for constraint, want := range map[string]State{">=v1": Satisfied, ">=v2": Incompatible} {
		got := g.Check([]dependency.Dependency{{Package: repository("a"), Constraint: constraint, Optional: true}, {
			Package: repository("b"), Constraint: constraint, Optional: true,
		}})
		if got[0].State != want || got[1].State != Absent || got[1].Installed.Name != "" {
			t.Errorf("%s: got %+v", constraint, got)
		}
	}
}
