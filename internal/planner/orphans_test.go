package planner

import (
	"strings"
	"testing"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

const orphanage = "registry.example.com/"

// around returns the cluster state for the first of some packages, each written as "name needs a
// b", with a star before the name if it was auto-installed.
func around(texts ...string) *clusterState {
	s := &clusterState{}
	for i, text := range texts {
		name, needs, _ := strings.Cut(text, " needs ")
		p := v1.NewPackage(v1.ProviderKind)
		p.SetName(strings.TrimPrefix(name, "*"))
		if strings.HasPrefix(name, "*") {
			p.SetLabels(map[string]string{graph.LabelAutoInstalled: "true"})
		}
		p.PackageSpec().Package = orphanage + p.GetName() + ":v1"
		entry := v1beta1.LockPackage{Name: p.GetName(), Source: orphanage + p.GetName(), Version: "v1"}
		for _, need := range strings.Fields(needs) {
			entry.Dependencies = append(entry.Dependencies, v1beta1.Dependency{Package: orphanage + need})
		}
		s.lock.Packages = append(s.lock.Packages, entry)
		if i == 0 {
			s.live = p
			continue
		}
		s.others = append(s.others, p)
	}
	return s
}

func pkg(name string, needs ...string) lockfile.Package {
	p := lockfile.Package{Repository: orphanage + name, Version: "v2", Kind: v1.ProviderKind}
	for _, n := range needs {
		p.Dependencies = append(p.Dependencies, dependency.Dependency{Package: orphanage + n})
	}
	return p
}

func TestOrphansOfAPlan(t *testing.T) {
	node := func(needs ...string) *graph.Node {
		return &graph.Node{Kind: v1.ProviderKind, Name: "p", Package: pkg("p", needs...)}
	}
	moved := graph.Node{Kind: v1.ProviderKind, Name: "mid", AutoInstalled: true}
	for name, tc := range map[string]struct {
		s       *clusterState
		will    *graph.Node
		changes []graph.Change
		want    string
		used    string
	}{
		"it goes":                  {around("p needs mid", "*mid needs leaf", "*leaf"), nil, nil, "mid leaf", ""},
		"it goes, and others stay": {around("p needs mid", "*mid needs leaf", "*leaf", "q needs leaf"), nil, nil, "mid", ""},
		"it becomes an orphan, and the package of a user stays": {around("p needs mid", "mid"), nil, nil, "", ""},
		"former orphans are not listed": {
			around("p needs mid", "*mid", "*vain"), nil, nil, "mid", "",
		},
		"a version that needs less":    {around("p needs mid", "*mid"), node(), nil, "mid", ""},
		"a version that needs as much": {around("p needs mid", "*mid"), node("mid"), nil, "", ""},
		"what comes with it needs it": {
			around("p needs mid", "*mid"), node("new"), []graph.Change{{To: pkg("new", "mid")}}, "", "",
		},
		"what moves with it needs less": {
			around("p needs mid", "*mid needs leaf", "*leaf"), node("mid"), []graph.Change{{Existing: &moved, To: pkg("mid")}},
			"leaf", "",
		},
		"nothing is known": {func() *clusterState {
			s := around(
				"p needs mid", "*mid",
			)
			s.lock.Packages = nil
			return s
		}(), nil, nil, "", ""},
		"nothing is there": {&clusterState{}, node(), nil, "", ""},
		"an install object uses a dependency": {
			around("p needs mid", "*mid needs leaf", "*leaf"), nil, nil, "", "mid",
		},
		"an install object uses a dependency of a dependency": {
			around("p needs mid", "*mid needs leaf", "*leaf"), nil, nil, "mid", "leaf",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var others []graph.Node
			for _, x := range tc.s.others {
				if n, ok := tc.s.node(x, nil); ok {
					others = append(others, n)
				}
			}
			in := packagesv1alpha1.NewInstall(packagesv1alpha1.PackageInstallKind)
			in.InstallStatus().Provider = tc.used
			// A Package of a user uses a Provider as an install object does.
			byKind := frontend.UsedKind{Provider: tc.used}
			for removed, uses := range map[bool]frontend.Uses{
				false: {Installs: []*frontend.Object{firstgen.Frontend().Of(in)}}, true: {Kinds: []frontend.UsedKind{byKind}},
			} {
				tc.s.lock.Annotations = nil
				if removed {
					tc.s.lock.Annotations = map[string]string{graph.AnnotationRemovalPolicy: "Orphans"}
				}
				var got []string
				for _, o := range tc.s.orphans(others, tc.will, tc.changes, uses) {
					if got = append(got, o.Name); o.Removed != removed || o.Reference != orphanage+o.Name+":v1" {
						t.Errorf("got %+v", o)
					}
				}
				if text := strings.Join(got, " "); text != tc.want {
					t.Errorf("the orphans are %q, want %q", text, tc.want)
				}
			}
		})
	}
}
