package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

const repositoryA = "registry.example.com/a"

// pkg returns a Provider that asks for a version. Healthy names the active revision as
// "name:number" if it has been healthy, and back the one that was brought back.
func pkg(asks, healthy, back string) v1.Package {
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("a")
	p.SetGeneration(2)
	p.PackageSpec().Package = repositoryA + ":" + asks + ".0.0"
	if healthy != "" {
		name, number, _ := strings.Cut(healthy, ":")
		a := &v1.Activation{Revision: name, Healthy: true}
		_, _ = fmt.Sscan(number, &a.Number)
		p.PackageStatus().Activation = a
	}
	if back != "" {
		p.PackageStatus().Rollback = &v1.Rollback{From: "another", To: back, Generation: 2}
	}
	return p
}

// revisions are written as "v1:1 v2:2*": the name, which begins the version, the number,
// and a star for an active one, or an exclamation mark for one that failed.
func revisions(text string) []v1.PackageRevision {
	var out []v1.PackageRevision
	for _, f := range strings.Fields(text) {
		rev := v1.NewPackage(v1.ProviderKind).NewRevision()
		name, number, _ := strings.Cut(strings.TrimRight(f, "*!"), ":")
		rev.SetName(name)
		rev.RevisionSpec().Image, rev.RevisionSpec().DesiredState = repositoryA+":"+name+".0.0", v1.RevisionInactive
		_, _ = fmt.Sscan(number, &rev.RevisionSpec().Revision)
		if strings.HasSuffix(f, "*") {
			rev.RevisionSpec().DesiredState = v1.RevisionActive
		}
		if strings.HasSuffix(f, "!") {
			rev.SetAnnotations(map[string]string{revision.AnnotationHealthy: "false"})
		}
		out = append(out, rev)
	}
	return out
}

// The states of an installed package, and whether each satisfies a dependency: the
// running version counts.
func TestStates(t *testing.T) {
	for name, tc := range map[string]struct {
		asks, revisions, healthy, back string
		last                           string
		running                        string
		needed                         string
		want                           State
	}{
		"fresh":                      {asks: "v2", needed: ">=v2", want: Satisfied},
		"fresh, and another version": {asks: "v1", needed: ">=v2", want: Incompatible},
		"its first revision": {
			asks: "v2", revisions: "v2:1*", running: "v2", needed: ">=v2", want: Satisfied,
		},
		"its first revision waits": {asks: "v2", revisions: "v2:0", needed: ">=v2", want: Satisfied},
		"settled": {
			asks: "v2", revisions: "v1:1 v2:2*", healthy: "v2:2", running: "v2", needed: ">=v2", want: Satisfied,
		},
		"settled, and another version": {
			asks: "v1", revisions: "v1:1*", healthy: "v1:1", running: "v1", needed: ">=v2", want: Incompatible,
		},
		"asked for, and not looked at": {
			asks: "v2", revisions: "v1:1*", healthy: "v1:1", running: "v1", needed: ">=v2", want: Progressing,
		},
		"between two revisions": {
			asks: "v2", revisions: "v1:1", healthy: "v1:1", running: "v1", needed: ">=v2", want: Progressing,
		},
		"under way": {
			asks: "v2", revisions: "v1:1 v2:2*", healthy: "v1:1", running: "v2 v1", needed: ">=v2", want: Progressing,
		},
		"under way, and both will do": {
			asks: "v2", revisions: "v1:1 v2:2*", healthy: "v1:1", running: "v2 v1", needed: ">=v1", want: Satisfied,
		},
		"under way after what did not work": {
			asks: "v3", revisions: "v1:1 v2:2 v3:3*", healthy: "v1:1", last: "v1", running: "v3 v1 v2", needed: ">=v3",
			want: Progressing,
		},
		"changing from the needed version": {
			asks: "v2", revisions: "v1:1 v2:2*", healthy: "v1:1", running: "v2 v1", needed: "<v2", want: Incompatible,
		},
		"another version is requested": {
			asks: "v2", revisions: "v1:1*", healthy: "v1:1", running: "v1", needed: "<v2", want: Satisfied,
		},
		"healthy under an earlier number": {
			asks: "v1", revisions: "v2:2 v1:3*", healthy: "v1:1", running: "v1 v2", needed: "<v2", want: Progressing,
		},
		"brought back": {
			asks: "v2", revisions: "v2:2 v1:3*", healthy: "v1:3", back: "v1", running: "v1", needed: ">=v2", want: Incompatible,
		},
		"rolled back to a needed version": {
			asks: "v2", revisions: "v2:2 v1:3*", healthy: "v1:3", back: "v1", running: "v1", needed: "<v2", want: Satisfied,
		},
		"being brought back": {
			asks: "v2", revisions: "v1:1 v2:2*", back: "v1", running: "v2 v1", needed: ">=v2", want: Incompatible,
		},
		"being brought back to what fits": {
			asks: "v2", revisions: "v1:1 v2:2", back: "v1", running: "v2 v1", needed: "<v2", want: Progressing,
		},
		"between two revisions of a rollback": {
			asks: "v2", revisions: "v1:1 v2:2", back: "v1", running: "v2 v1", needed: ">=v2", want: Incompatible,
		},
		"rolled back after it was healthy": {
			asks: "v2", revisions: "v1:1 v2:2", healthy: "v2:2", back: "v1", running: "v2 v1", needed: ">=v2",
			want: Incompatible,
		},
		"the rollback is not in the cache": {
			asks: "v2", revisions: "v1:1 v2:2!", last: "v1", running: "v2 v1", needed: ">=v2", want: Progressing,
		},
		"two are active for a moment": {
			asks: "v2", revisions: "v1:1* v2:2*", healthy: "v1:1", running: "v2 v1", needed: ">=v2", want: Progressing,
		},
		"a person waits to activate it": {
			asks: "v2", revisions: "v1:1* v2:0", healthy: "v1:1", running: "v1", needed: ">=v2", want: Progressing,
		},
		"the old one was collected already": {
			asks: "v2", revisions: "v2:2*", healthy: "v1:1", running: "v2", needed: ">=v2", want: Satisfied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, all := pkg(tc.asks, tc.healthy, tc.back), revisions(tc.revisions)
			p.PackageStatus().LastHealthyRevision = tc.last
			image := p.PackageSpec().Package
			if back := RolledBackTo(p, all); back != nil {
				image = back.RevisionSpec().Image
			}
			n, _ := NodeFromImage(p, image, CurrentDigest(p), nil)
			n.Running = Running(p, all)
			var running []string
			for _, v := range n.Running {
				running = append(running, strings.TrimSuffix(v.String(), ".0.0"))
			}
			if diff := cmp.Diff(tc.running, strings.Join(running, " ")); diff != "" {
				t.Errorf("running (-want +got):\n%s", diff)
			}
			got := New([]Node{n}, nil).Check([]dependency.Dependency{{Package: repositoryA, Constraint: tc.needed}})
			if got[0].State != tc.want {
				t.Errorf("it is %s, want %s", got[0].State, tc.want)
			}
			any := New([]Node{n}, nil).Check([]dependency.Dependency{{Package: repositoryA}})
			if any[0].State != Satisfied {
				t.Errorf("for a dependent without a constraint it is %s", any[0].State)
			}
		})
	}
}
