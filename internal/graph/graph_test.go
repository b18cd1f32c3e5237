package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// node returns a package written as "name needs a, b"; with a star before the name it was
// made for others, and with a minus its needs are skipped. A need with a question mark is
// optional.
func node(text string) Node {
	name, needs, _ := strings.Cut(text, " needs ")
	n := Node{
		Kind: "Configuration", AutoInstalled: strings.HasPrefix(name, "*"), SkipDependencies: strings.HasPrefix(name, "-"),
	}
	n.Name = strings.TrimLeft(name, "*-")
	n.Package = lockfile.Package{
		Repository: repository(n.Name), Version: "v1.0.0", Digest: oci.DigestOf([]byte(n.Name)), Kind: "Configuration",
	}
	for need := range strings.SplitSeq(needs, ", ") {
		if name, optional := strings.CutPrefix(need, "?"); need != "" {
			n.Dependencies = append(n.Dependencies, dependency.Dependency{
				Package: repository(name), Constraint: ">=v1", Optional: optional,
			})
		}
	}
	return n
}

func repository(name string) string { return "registry.example.com/" + name }

func graph(lines ...string) *Graph {
	var nodes []Node
	for _, line := range lines {
		nodes = append(nodes, node(line))
	}
	return New(nodes, nil)
}

func namesOf(nodes []Node) string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return strings.Join(out, " ")
}

func TestComponent(t *testing.T) {
	g := graph("a needs b",
		"*b needs c", "*c", "d needs c", "e needs f", "x needs gone", "y needs gone", "-s needs z", "z", "alone",
		"o needs ?p", "p needs ?absent", "q needs ?absent", "r needs absent")
	for of, want := range map[string]string{
		"a": "a b c d", "c": "a b c d", "d": "a b c d",
		"e": "e", // What it needs is not there.
		"x": "x y", "alone": "alone",
		"o": "o p", "p": "o p", // What it works with is there.
		"q": "q", "r": "r", // It is not.
		"s": "s", "z": "z", // Skipped dependencies connect no packages.
		"nobody": "",
	} {
		if got := namesOf(g.Component("Configuration", of).Nodes()); got != want {
			t.Errorf("%s has to do with %q, want %q", of, got, want)
		}
	}
}

// hardening: F11
func TestOrphans(t *testing.T) {
	for text, want := range map[string]string{
		"a needs b; *b needs c; *c":              "",
		"a; *b needs c; *c":                      "b c",
		"a needs c; *b needs c; *c":              "b",
		"a needs ?b; *b needs c; *c":             "b c",
		"a needs b; *b needs ?c; *c":             "c",
		"a; *b; *c needs b; *d needs c":          "d c b",
		"-a needs b; *b":                         "", // A skipped dependency is declared all the same.
		"-a needs b; *b needs c; *c; *d":         "d",
		"*b needs c; *c needs b":                 "b c",
		"a needs b; b; *c":                       "c",
		"a needs b; *b needs d; *d needs e; *e":  "",
		"a needs b; *b; *d needs b; *e needs d2": "d e",
	} {
		if got := namesOf(graph(strings.Split(text, "; ")...).Orphans()); got != want {
			t.Errorf("%s: the orphans are %q, want %q", text, got, want)
		}
	}
}

// A package in use is needed, with everything that it requires.
func TestPackagesInUseAreNoOrphans(t *testing.T) {
	g := graph("a", "*b needs c", "*c", "*d needs b")
	for i := range g.nodes {
		g.nodes[i].InUse = g.nodes[i].Name == "b"
	}
	if got := namesOf(g.Orphans()); got != "d" {
		t.Errorf("the orphans are %q, want d", got)
	}
}

// A package is identified by the repository that it is read from, whatever name its
// dependents use.
func TestNames(t *testing.T) {
	from := func(repository string) string {
		return strings.Replace(repository, "public.example.com", "mirror.example.com", 1)
	}
	a, b := node("a"), node("b")
	a.Dependencies = []dependency.Dependency{{Package: "public.example.com/b", Constraint: ">=v1"}}
	b.Repository = "mirror.example.com/b"
	g := New([]Node{a, b}, from)
	if got := g.Check(a.Dependencies)[0]; got.State != Satisfied || got.Installed.Name != "b" {
		t.Errorf("got %+v", got)
	}
	if got := namesOf(g.Component("Configuration", "b").Nodes()); got != "a b" {
		t.Errorf("it has to do with %q", got)
	}
	if got := g.Name("public.example.com/c"); got != "public.example.com/c" {
		t.Errorf("what is not there is called %s", got)
	}
}

func TestRequest(t *testing.T) {
	unread := node("unread needs x")
	unread.Digest = oci.Digest{}
	twin := node("a")
	twin.Name, twin.Dependencies = "twin", []dependency.Dependency{{Package: repository("c"), Constraint: "<v2"}}
	paused := node("*paused")
	paused.Paused = true
	follows, fixed := node("follows"), node("fixed")
	follows.FollowsDependents, fixed.FollowsDependents, fixed.Version = true, true, "latest"
	g := New([]Node{
		node("a needs b, paused"), node("*b"), paused, node("*vain"), node("-s needs absent"), unread, twin, follows, fixed,
	}, nil)
	q := g.Request(Upgrade)
	var roots, kept []string
	for _, r := range q.Roots {
		roots = append(roots, fmt.Sprintf("%s: %s %s", r.By, strings.TrimPrefix(r.Package, repository("")), r.Constraint))
	}
	for _, k := range q.Locked {
		kept = append(kept, fmt.Sprintf("%s needs %d", strings.TrimPrefix(k.Repository, repository("")), len(k.Dependencies)))
	}
	if diff := cmp.Diff([]string{
		"configuration/a: a v1.0.0", "configuration/fixed: fixed latest", "configuration/follows: follows >=0.0.0-0",
		"configuration/paused (paused): paused v1.0.0", "configuration/s: s v1.0.0", "configuration/twin: c <v2",
		"configuration/unread: unread v1.0.0", "configuration/vain: vain v1.0.0",
	}, roots); diff != "" {
		t.Errorf("roots (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(
		[]string{"a needs 2", "b needs 0", "fixed needs 0", "follows needs 0", "paused needs 0", "s needs 0", "vain needs 0"},
		kept,
	); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// hardening: F1
func TestCheckCycle(t *testing.T) {
	g := graph(
		"a needs b", "b needs c, d", "c needs ?a", "d needs a", "e needs a", "self needs self", "-skips needs skips",
		"alone needs gone",
	)
	for of, want := range map[string]string{
		"a": "a b d a", "b": "b d a b", "d": "d a b d", "self": "self self",
		"c": "", "e": "", "skips": "", "alone": "", "nobody": "",
	} {
		got := ""
		if err := g.CheckCycle("Configuration", of); err != nil {
			got = strings.NewReplacer(repository(""), "", " v1.0.0", "", " requires", "").
				Replace(errcode.From(err).Unwrap().Error())
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", of, got, want)
		}
	}
}

// A second package of a repository, which cannot get the objects of the first one, does not satisfy or break
// dependencies on it.
func TestPackageWhoseObjectsExistRepresentsItsRepository(t *testing.T) {
	works, fails := node("works"), node("fails")
	fails.Repository = works.Repository
	works.Running = []Version{VersionOf(works)}
	for _, order := range [][]Node{{works, fails}, {fails, works}} {
		g := New(order, nil)
		if got, ok := g.Find(works.Repository); !ok || got.Name != "works" {
			t.Errorf("%s represents the repository", got.Name)
		}
	}
	works.Running = nil
	if got, _ := New([]Node{works, fails}, nil).Find(works.Repository); got.Name != "fails" {
		t.Errorf("of two packages without objects, %s represents the repository", got.Name)
	}
}

func TestChanges(t *testing.T) {
	g := graph("a needs b", "*b")
	to := func(name, version string, needs ...string) lockfile.Package {
		p := node(name + " needs " + strings.Join(needs, ", ")).Package
		p.Version = version
		return p
	}
	result := resolver.Result{File: lockfile.File{Packages: []lockfile.Package{
		to("a", "v1.0.0", "b", "c"), to("b", "v1.1.0", "d"), to("c", "v1.0.0", "d"), to("d", "v1.0.0"),
	}}}
	var got []string
	for _, c := range g.Changes(result) {
		was := "-"
		if c.Existing != nil {
			was = c.Existing.VersionOrDigest()
		}
		got = append(got, fmt.Sprintf(
			"%s %s %s for %s", strings.TrimPrefix(c.To.Repository, repository("")), was, c.To.Version,
			strings.ReplaceAll(strings.Join(c.RequiredBy, " "), repository(""), ""),
		))
	}
	if diff := cmp.Diff([]string{"d - v1.0.0 for b c", "b v1.0.0 v1.1.0 for a", "c - v1.0.0 for a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Components divide the packages: each package is in one, and all its dependencies are
// in the same one. A graph without its orphans has no orphans.
//
// hardening: F13
func TestGraphProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const many = 8
		var nodes []Node
		for i := range rapid.IntRange(1, many).Draw(r, "nodes") {
			text := fmt.Sprintf("%sp%d needs ", rapid.SampledFrom([]string{"", "*", "-"}).Draw(r, "sort"), i)
			for _, j := range rapid.SliceOfNDistinct(rapid.IntRange(0, many), 0, 3, rapid.ID[int]).Draw(r, "needs") {
				text += fmt.Sprintf("%sp%d, ", rapid.SampledFrom([]string{"", "", "?"}).Draw(r, "optional"), j)
			}
			nodes = append(nodes, node(text))
		}
		g := New(nodes, nil)
		for _, n := range g.Nodes() {
			own := g.Component(n.Kind, n.Name)
			for _, member := range own.Nodes() {
				if again := g.Component(member.Kind, member.Name); namesOf(again.Nodes()) != namesOf(own.Nodes()) {
					r.Fatalf("%s is with %s, which is with %s", n.Name, namesOf(own.Nodes()), namesOf(again.Nodes()))
				}
				for _, d := range g.links(member) {
					if to, ok := g.Find(d.Package); ok &&
						!slices.ContainsFunc(own.Nodes(), func(o Node) bool { return o.Name == to.Name }) {
						r.Fatalf("%s needs %s, which is elsewhere", member.Name, to.Name)
					}
				}
			}
		}
		orphans := g.Orphans()
		left := slices.DeleteFunc(slices.Clone(g.Nodes()), func(n Node) bool {
			return slices.ContainsFunc(orphans, func(o Node) bool { return o.Name == n.Name })
		})
		if more := New(left, nil).Orphans(); len(more) > 0 {
			r.Fatalf("without %s, %s is an orphan", namesOf(orphans), namesOf(more))
		}
	})
}

// An optional dependency that is absent constrains the version that may be installed,
// and has no other effect.
func TestConditions(t *testing.T) {
	g := graph("a needs absent, ?other", "b needs ?absent, ?a", "c needs ?absent", "-d needs ?absent", "e needs ?c")
	q := g.Component("Configuration", "a").Request(None)
	var got []string
	for _, r := range q.Roots {
		got = append(
			got, fmt.Sprintf("%s: %s %s %v", r.By, strings.TrimPrefix(r.Package, repository("")), r.Constraint, r.Optional),
		)
	}
	for _, k := range q.Locked {
		for _, d := range k.Dependencies {
			got = append(got, fmt.Sprintf(
				"%s %s %v", strings.TrimPrefix(k.Repository, repository("")), strings.TrimPrefix(d.Package, repository("")),
				d.Optional,
			))
		}
	}
	if diff := cmp.Diff([]string{
		"configuration/a: a v1.0.0 false", "configuration/b: b v1.0.0 false", "configuration/c: absent >=v1 true",
		"a absent false", "a other true", "b absent true", "b a true",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// A package is found in all spellings of its repository, as a dependency and as an entry of the Lock.
func TestAGraphComparesRepositories(t *testing.T) {
	hub, user := node("hub"), node("user needs x")
	hub.Repository, user.Dependencies[0].Package = "index.docker.io/hub", "docker.io/library/hub"
	g := New([]Node{hub, user}, nil)
	for _, spelling := range []string{"index.docker.io/hub", "docker.io/hub", "docker.io/library/hub"} {
		if got := g.Name(spelling); got != hub.Repository {
			t.Errorf("%s is %s", spelling, got)
		}
		if got := g.Dependents(spelling); len(got) != 1 || got[0].Name != "user" {
			t.Errorf("the dependents of %s are %v", spelling, got)
		}
	}
	if got := g.Check([]dependency.Dependency{{Package: "docker.io/hub", Constraint: ">=v1"}}); got[0].State != Satisfied {
		t.Errorf("the dependency is %s", got[0].State)
	}
	p := v1.NewPackage(v1.ProviderKind)
	p.PackageSpec().Package, p.PackageStatus().CurrentRevision = "docker.io/hub:v1@"+hub.Digest.String(), "hub-1"
	for version, want := range map[string]bool{"v1": true, hub.Digest.String(): true, "v2": false} {
		if _, ok := LockEntry(p, []v1beta1.LockPackage{{
			Name: "hub-1", Source: "index.docker.io/hub", Version: version,
		}}); ok != want {
			t.Errorf("an entry with the version %s is the entry of %s: %t", version, p.PackageSpec().Package, ok)
		}
	}
}
