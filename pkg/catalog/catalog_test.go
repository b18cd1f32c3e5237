package catalog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

var (
	someKinds  = []string{"Bucket", "BucketPolicy", "Role", "User", "XNetwork"}
	someGroups = []string{"iam.example.org", "s3.example.org"}
	someAPIs   = []string{"v1", "v1beta1", "v2"}
	someTags   = []string{"v0.9.0", "v1.0.0", "v1.1.0-rc.1", "v1.1.0", "v1.2.0", "v2.0.0-alpha.1", "main"}
)

func repositoryName(i int) string { return fmt.Sprintf("registry.example.org/acme/p%d", i) }

// drawFacts draws the facts of one version.
func drawFacts(t *rapid.T, repository int, tag string) Facts {
	f := Facts{Repository: repositoryName(repository), Head: &Head{}}
	f.Version = Version{
		Tag: tag, Digest: oci.DigestOf([]byte(fmt.Sprint(repository, tag, rapid.IntRange(0, 3).Draw(t, "content")))),
	}
	f.Version.Created = time.Unix(int64(rapid.IntRange(1, 9).Draw(t, "created")), 0).UTC()
	if rapid.IntRange(0, 3).Draw(t, "depends") == 0 {
		f.Version.Dependencies = []dependency.Dependency{{
			Package: repositoryName(rapid.IntRange(0, 3).Draw(t, "on")), Constraint: ">=v1.0.0",
		}}
	}
	if rapid.IntRange(0, 9).Draw(t, "failed") == 0 {
		return Failed(f.Repository, tag, f.Version.Digest, f.Version.Created, IndexError{"BrokenLayer", "it is damaged"})
	}
	f.Head.Package = Package{
		Repository: f.Repository, Type: "Provider", Title: rapid.SampledFrom([]string{"", "One", "Two"}).Draw(t, "title"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "kinds") {
		f.Head.Kinds = append(f.Head.Kinds, drawKind(t, f.Repository))
	}
	f.normalize()
	if state := rapid.SampledFrom([]State{"", "", "", Yanked, Deprecated, Removed}).Draw(t, "state"); state != "" {
		f.Version.Status = &Status{State: state, Reason: Broken, Since: time.Unix(100, 0).UTC()}
	}
	if rapid.IntRange(0, 5).Draw(t, "retracts") == 0 {
		f.Head.Retracts = []Retraction{{Versions: rapid.SampledFrom(someTags).Draw(t, "retracted"), Reason: Security}}
	}
	if rapid.IntRange(0, 3).Draw(t, "text") == 0 {
		f.Head.Text = &Text{Repository: f.Repository, Readme: "a bucket"}
	}
	return f
}

func drawKind(t *rapid.T, repository string) Kind {
	kind := rapid.SampledFrom(someKinds).Draw(t, "kind")
	k := Kind{
		Kind: kind, Group: rapid.SampledFrom(someGroups).Draw(t, "group"), Plural: strings.ToLower(kind) + "s",
		Singular: strings.ToLower(kind), Scope: "Cluster",
		Role: Provides, Repository: repository,
	}
	if other := strings.ToLower(rapid.SampledFrom(someKinds).Draw(t, "short name")); other != k.Singular {
		k.ShortNames = []string{other} // The name of another kind, too.
	}
	k.Served = rapid.SliceOfNDistinct(rapid.SampledFrom(someAPIs), 0, 3, rapid.ID[string]).Draw(t, "served")
	if len(k.Served) == 0 {
		k.Served = nil
	}
	slices.SortFunc(k.Served, compareAPIVersions)
	return k
}

// drawAll draws the facts of some packages.
func drawAll(t *rapid.T) []Facts {
	var all []Facts
	for repository := range rapid.IntRange(0, 3).Draw(t, "packages") {
		for _, tag := range rapid.SliceOfNDistinct(rapid.SampledFrom(someTags), 1, len(someTags), rapid.ID[string]).
			Draw(t, "tags") {
			all = append(all, drawFacts(t, repository, tag))
		}
	}
	return all
}

func build(t rapid.TB, facts []Facts) Catalog {
	t.Helper()
	c, err := Build(Config{Name: "test", Shards: 4}, facts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func equal(t rapid.TB, a, b Catalog) {
	t.Helper()
	if d := cmp.Diff(a, b, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b oci.Digest) bool { return a == b })); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}

func TestOrderOfFactsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawAll(t)
		want := build(t, facts)
		shuffled := slices.Concat(facts, facts[:len(facts)/2])
		r := rand.New(rand.NewPCG(1, uint64(len(facts))))
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		equal(t, want, build(t, shuffled))
	})
}

func TestFoldOfDiffEqualsRebuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := build(t, drawAll(t)), build(t, drawAll(t))
		to.Config.Sources = []Source{{Kind: SourceRegistry, Location: "registry.example.org"}}
		got, err := Fold(&from, Diff(&from, &to))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, to, got)
		if events := Diff(&to, &got); len(events) > 0 {
			t.Fatalf("events without a change: %+v", events)
		}
	})
}

func TestServedVersionsFollowFromIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawAll(t)
		c := build(t, facts)
		for i := range c.Histories {
			h := &c.Histories[i]
			served, err := h.served()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range facts {
				at := slices.IndexFunc(h.Versions, func(v Version) bool { return v.Tag == f.Version.Tag })
				if f.Repository != h.Repository || !h.Versions[at].indexed() {
					continue
				}
				if d := cmp.Diff(f.Served, served[at], cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("%s:%s: -want +got:\n%s", f.Repository, f.Version.Tag, d)
				}
			}
		}
	})
}

func TestNewestVersionIsTheHighestUsableRelease(t *testing.T) {
	version := func(tag string, state State) Facts {
		f := Facts{Repository: repositoryName(0), Version: Version{Tag: tag}, Head: &Head{Package: Package{Title: tag}}}
		if state != "" {
			f.Version.Status = &Status{State: state}
		}
		return f
	}
	for _, tc := range []struct {
		name   string
		facts  []Facts
		latest string
		title  string
	}{
		{"release before prerelease", []Facts{version("v1.0.0", ""), version("v2.0.0-rc.1", "")}, "v1.0.0", "v1.0.0"},
		{"prerelease without release", []Facts{
			version("v0.1.0-rc.1", ""), version("main", ""),
		}, "v0.1.0-rc.1", "v0.1.0-rc.1"},
		{"yanked", []Facts{version("v1.0.0", ""), version("v1.1.0", Yanked)}, "v1.0.0", "v1.0.0"},
		{"deprecated", []Facts{version("v1.0.0", ""), version("v1.1.0", Deprecated)}, "v1.1.0", "v1.1.0"},
		{"all yanked", []Facts{version("v1.0.0", Yanked), version("v1.1.0", Yanked)}, "", "v1.1.0"},
		{"all removed", []Facts{version("v1.0.0", Removed)}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := build(t, tc.facts)
			if p := c.Packages[0]; p.Latest != tc.latest || p.Title != tc.title {
				t.Errorf("got %q and %q, want %q and %q", p.Latest, p.Title, tc.latest, tc.title)
			}
		})
	}
}

func TestConflictingFactsAreRefused(t *testing.T) {
	a := Facts{
		Repository: repositoryName(0), Version: Version{Tag: "v1.0.0", Digest: oci.DigestOf([]byte("a"))}, Head: &Head{},
	}
	b := a
	b.Version.Digest = oci.DigestOf([]byte("b"))
	if _, err := Build(Config{}, []Facts{a, b}); !errors.Is(err, ErrConflictingFacts) {
		t.Errorf("got %v", err)
	}
	a.Head = nil
	if _, err := Build(Config{}, []Facts{a}); !errors.Is(err, ErrIncompleteFacts) {
		t.Errorf("got %v", err)
	}
}

func TestRetractionAppliesUntilANewerVersionWithdrawsIt(t *testing.T) {
	facts := func(tag string, retracts ...Retraction) Facts {
		return Facts{Repository: repositoryName(0), Version: Version{Tag: tag}, Head: &Head{Retracts: retracts}}
	}
	all := []Facts{facts("v1.0.0"), facts("v1.1.0"), facts("v1.2.0", Retraction{
		Versions: "<v1.2.0", Reason: Security, Message: "CVE",
	})}
	c := build(t, all)
	for _, v := range c.Histories[0].Versions[:2] {
		if v.Status == nil || v.Status.State != Retracted || v.Status.Message != "CVE" {
			t.Errorf("%s has the status %+v", v.Tag, v.Status)
		}
	}
	c = build(t, append(all, facts("v1.3.0")))
	for _, v := range c.Histories[0].Versions {
		if v.Status != nil {
			t.Errorf("%s is still retracted", v.Tag)
		}
	}
}

func TestStatusRoundTrip(t *testing.T) {
	s := VersionStatus{Tag: "v1.0.0", Digest: oci.DigestOf([]byte("x")), Status: Status{
		State: Yanked, Reason: Security, Message: "CVE-1", Since: time.Unix(9, 0).UTC(),
	}}
	text, err := EncodeStatus(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseStatus(text)
	if err != nil {
		t.Fatal(err)
	}
	if got != s {
		t.Errorf("got %+v", got)
	}
	if d, ok := ParseStatusTag(StatusTag(s.Digest)); !ok || d != s.Digest {
		t.Errorf("the tag %s is not read back", StatusTag(s.Digest))
	}
	for name, change := range map[string]func(*VersionStatus){
		"state": func(s *VersionStatus) { s.State = "burnt" }, "reason": func(s *VersionStatus) { s.Reason = "because" },
		"two lines": func(s *VersionStatus) {
			s.Message = "a\nb"
		}, "escape": func(s *VersionStatus) { s.ReplacedBy = "\x1b[31m" },
		"tag": func(s *VersionStatus) { s.Tag = "../x" }, "digest": func(s *VersionStatus) { s.Digest = oci.Digest{} },
	} {
		wrong := s
		change(&wrong)
		if _, err := EncodeStatus(wrong); !errors.Is(err, ErrInvalidStatus) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
