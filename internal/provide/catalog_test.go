package provide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// indexOf returns a catalog of packages. Each text has the form "REPOSITORY VERSION: KIND.GROUP/VERSION,...; …" with
// the versions of a package in order; the last one is the newest.
func indexOf(t testing.TB, texts ...string) *catalog.Catalog {
	t.Helper()
	c := &catalog.Catalog{}
	for _, text := range texts {
		repository, rest, _ := strings.Cut(text, " ")
		repository = "xpkg.test/" + repository
		h := catalog.History{Repository: repository}
		intervals := map[dependency.KindRef]int{}
		var last []catalog.Kind
		for line := range strings.SplitSeq(rest, ";") {
			tag, kinds, _ := strings.Cut(strings.TrimSpace(line), ":")
			last = nil
			seen := map[dependency.KindRef]bool{}
			for one := range strings.FieldsSeq(kinds) {
				k, err := dependency.ParseKindRef(one)
				if err != nil {
					t.Fatal(err)
				}
				seen[k] = true
				if _, ok := intervals[k]; !ok {
					h.Kinds = append(h.Kinds, catalog.KindHistory{Group: k.Group, Kind: k.Name, Intervals: []catalog.Interval{{
						Version: k.Version, Since: tag,
					}}})
					intervals[k] = len(h.Kinds) - 1
				}
				last = append(last, catalog.Kind{
					Kind: k.Name, Group: k.Group, Plural: strings.ToLower(k.Name) + "s", Singular: strings.ToLower(k.Name),
					Served: []string{k.Version}, Role: catalog.Provides, Repository: repository, Since: tag,
				})
			}
			for k, at := range intervals {
				if !seen[k] && h.Kinds[at].Intervals[0].Until == "" {
					h.Kinds[at].Intervals[0].Until = tag
				}
			}
			h.Versions = append(h.Versions, catalog.Version{
				Tag: tag, Digest: oci.DigestOf([]byte(repository + tag)), Kinds: len(last),
				Created: time.Unix(int64(len(h.Versions)), 0),
			})
		}
		newest := h.Versions[len(h.Versions)-1]
		c.Packages = append(c.Packages, catalog.Package{
			Repository: repository, Type: "Provider", Latest: newest.Tag, Kinds: newest.Kinds,
		})
		c.Histories = append(c.Histories, h)
		c.Kinds = append(c.Kinds, last...)
	}
	return c
}

func kindRef(t testing.TB, text string) dependency.KindRef {
	t.Helper()
	k, err := dependency.ParseKindRef(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAnIndexSelectsTheNewestVersionThatServesTheKind(t *testing.T) {
	index := indexOf(
		t,
		"acme/s3 v1.0.0: Bucket.s3.example.org/v1beta1; v1.1.0: Bucket.s3.example.org/v1beta1; v2.0.0: Bucket.s3.example.org/v1; v2.1.0-rc.1: Bucket.s3.example.org/v1",
	)
	versions := index.Histories[0].Versions
	for name, c := range map[string]struct {
		kind                      string
		change                    func()
		version, constraint, text string
	}{
		"the newest release":    {"Bucket.s3.example.org", nil, "v2.0.0", ">=v1.0.0, <v2.0.0 || >=v2.0.0", ""},
		"a former API version":  {"Bucket.s3.example.org/v1beta1", nil, "v1.1.0", ">=v1.0.0, <v2.0.0", ""},
		"a current API version": {"buckets.s3.example.org/v1", nil, "v2.0.0", ">=v2.0.0", ""},
		"a yanked version": {
			"Bucket.s3.example.org/v1beta1", func() { versions[1].Status = &catalog.Status{State: catalog.Yanked} }, "v1.0.0",
			">=v1.0.0, <v2.0.0", "",
		},
		"a deprecated version": {
			"Bucket.s3.example.org/v1beta1", func() { versions[1].Status = &catalog.Status{State: catalog.Deprecated} },
			"v1.1.0", ">=v1.0.0, <v2.0.0", "",
		},
		"only a prerelease": {
			"Bucket.s3.example.org/v1", func() { versions[2].Status = &catalog.Status{State: catalog.Retracted} }, "v2.1.0-rc.1",
			"v2.1.0-rc.1", "",
		},
		"a broken version": {
			"Bucket.s3.example.org/v1beta1", func() { versions[1].Error = &catalog.IndexError{Code: "X"} }, "v1.0.0",
			">=v1.0.0, <v2.0.0", "",
		},
		"another Crossplane": {
			"Bucket.s3.example.org/v1beta1", func() { versions[1].Crossplane = ">=v9" }, "v1.0.0", ">=v1.0.0, <v2.0.0", "",
		},
		"no version": {
			"Bucket.s3.example.org/v1beta1", func() { versions[0].Crossplane, versions[1].Crossplane = ">=v9", ">=v9" }, "", "",
			"its version v1.0.0 requires Crossplane >=v9",
		},
		"an unknown API version":  {"Bucket.s3.example.org/v3", nil, "v2.1.0-rc.1", "", ""},
		"an empty version of all": {"*.s3.example.org", nil, "v2.0.0", ">=v1.0.0, <v2.0.0 || >=v2.0.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			saved := append([]catalog.Version{}, versions...)
			defer copy(versions, saved)
			if c.change != nil {
				c.change()
			}
			source := Catalog{Catalog: index, Fits: func(constraint string) bool { return constraint != ">=v9" }}
			got := source.Candidates(kindRef(t, c.kind))
			if len(got) != 1 || got[0].Version != c.version || got[0].Constraint != c.constraint || got[0].Unusable != c.text {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTheOwnerOfADomainOwnsItsGroups(t *testing.T) {
	for _, c := range []struct {
		verified, group string
		want            bool
	}{
		{"domain:example.org", "example.org", true}, {"domain:example.org", "s3.example.org", true},
		{"domain:example.org", "s3.badexample.org", false},
		{"domain:org", "example.org", false}, {"domain:", "example.org", false}, {"", "example.org", false},
		{"key", "example.org", false},
		{"domain:s3.example.org", "example.org", false},
	} {
		if got := ownsGroup(c.verified, c.group); got != c.want {
			t.Errorf("%s owns %s: %v", c.verified, c.group, got)
		}
	}
}

// TestTheOwnerInAnIndexDecidesAContestedKind checks kinds of one group in packages of two organisations.
func TestTheOwnerInAnIndexDecidesAContestedKind(t *testing.T) {
	index := indexOf(t, "acme/s3 v1.0.0: Bucket.s3.example.org/v1", "evil/s3 v9.0.0: Bucket.s3.example.org/v1")
	for name, c := range map[string]struct {
		owner, verified string
		decided         Reason
		first           string
	}{
		"no owner":                       {"", "", "", "xpkg.test/acme/s3"},
		"a repository":                   {"xpkg.test/acme/s3", "", OwnsGroup, "xpkg.test/acme/s3"},
		"an organisation":                {"xpkg.test/acme", "", OwnsGroup, "xpkg.test/acme/s3"},
		"a similar organisation":         {"xpkg.test/ac", "", "", "xpkg.test/acme/s3"},
		"an owner without such packages": {"xpkg.test/other", "", "", "xpkg.test/acme/s3"},
		"an owner instead of a domain":   {"xpkg.test/acme", "domain:example.org", OwnsGroup, "xpkg.test/acme/s3"},
		"only a domain":                  {"", "domain:example.org", OwnsGroup, "xpkg.test/evil/s3"},
	} {
		t.Run(name, func(t *testing.T) {
			index.Config.Owners = nil
			if c.owner != "" {
				index.Config.Owners = []catalog.GroupOwner{{Group: "s3.example.org", Owner: c.owner}}
			}
			evil := &index.Packages[1]
			evil.Publisher, evil.Verified = "Evil", c.verified
			finder := &Finder{Sources: []Source{Catalog{Catalog: index, Name: "index"}}}
			r, err := finder.Rank(t.Context(), Request{Kind: kindRef(t, "Bucket.s3.example.org")})
			if err != nil || r.Decided != c.decided || r.Order[0].Repository != c.first {
				t.Errorf("%q: %+v, %v", r.Decided, r.Order, err)
			}
		})
	}
}

// TestAnIndexCannotTakeAGroupFromTheOwnerInAnother has an index of an organisation, and one that states another owner
// for the group.
func TestAnIndexCannotTakeAGroupFromTheOwnerInAnother(t *testing.T) {
	for name, c := range map[string]struct {
		priority int // of the other index
		owner    string
		bucket   Reason
	}{
		"a lower priority":                    {2, "xpkg.test/evil", OwnsGroup},
		"the same priority":                   {1, "xpkg.test/evil", ""},
		"the same priority, the same owner":   {1, "xpkg.test/acme", OwnsGroup},
		"the same priority, and everything":   {1, "xpkg.test", ""},
		"a lower priority, without an owner":  {2, "", OwnsGroup},
		"a higher priority, without an owner": {0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			own := Catalog{Catalog: indexOf(t, "acme/s3 v1.0.0: Bucket.s3.example.org/v1"), Name: "own", Priority: 1}
			own.Config.Owners = []catalog.GroupOwner{{Group: "s3.example.org", Owner: "xpkg.test/acme"}}
			other := Catalog{
				Catalog: indexOf(t, "evil/s3 v9.0.0: Bucket.s3.example.org/v1 Object.s3.example.org/v1"), Name: "other",
				Priority: c.priority,
			}
			if c.owner != "" {
				other.Config.Owners = []catalog.GroupOwner{{Group: "s3.example.org", Owner: c.owner}}
			}
			for _, sources := range [][]Source{{own, other}, {other, own}} {
				finder := &Finder{Sources: sources}
				r, err := finder.Rank(t.Context(), Request{Kind: kindRef(t, "Bucket.s3.example.org")})
				if err != nil || r.Decided != c.bucket || r.Decided != "" && r.Order[0].Repository != "xpkg.test/acme/s3" {
					t.Errorf("%q: %+v, %v", r.Decided, r.Order, err)
				}
				if r, err = finder.Rank(t.Context(), Request{Kind: kindRef(t, "Object.s3.example.org")}); err != nil ||
					r.Decided != "" {
					t.Errorf("a kind that only the other has: %q: %+v, %v", r.Decided, r.Order, err)
				}
				all, err := finder.Expand(t.Context(), kindRef(t, "*.s3.example.org/v1"), nil)
				if isDecided := slices.Equal(all, []dependency.KindRef{kindRef(t, "Bucket.s3.example.org/v1")}); err != nil ||
					isDecided != (c.bucket != "") {
					t.Errorf("all kinds: %v, %v", all, err)
				}
			}
		})
	}
}

func TestIndexesAreSourcesOfTheFinder(t *testing.T) {
	first := Catalog{
		Catalog: indexOf(t, "acme/s3 v1.0.0: Bucket.s3.example.org/v1 Object.s3.example.org/v1"), Name: "first",
	}
	second := Catalog{Catalog: indexOf(t, "evil/s3 v9.0.0: Bucket.s3.example.org/v1"), Name: "second", Priority: 1}
	alone := &Finder{Sources: []Source{first}}
	r, err := alone.Rank(t.Context(), Request{Kind: kindRef(t, "buckets.s3.example.org")})
	if err != nil || r.Decided != OnlyProvider || r.Order[0].Ref() != "xpkg.test/acme/s3:v1.0.0" {
		t.Errorf("%+v, %v", r, err)
	}
	both := &Finder{Sources: []Source{second, first}}
	if r, err = both.Rank(t.Context(), Request{Kind: kindRef(t, "Bucket.s3.example.org")}); err != nil ||
		r.Decided != "" || r.Order[0].Repository != "xpkg.test/acme/s3" {
		t.Errorf("%+v, %v", r, err)
	}
	// A kind that only the second index has, in a group of the first.
	if r, _ = both.Rank(t.Context(), Request{Kind: kindRef(t, "Object.s3.example.org")}); r.Decided != "" {
		t.Errorf("%+v", r)
	}
	both.Selected = map[dependency.KindRef]string{kindRef(t, "buckets.s3.example.org"): "xpkg.test/acme/s3"}
	if r, _ = both.Rank(t.Context(), Request{Kind: kindRef(t, "Bucket.s3.example.org/v1")}); r.Decided != Recorded ||
		r.Order[0].Repository != "xpkg.test/acme/s3" {
		t.Errorf("a selection under another name of the kind is not used: %+v", r)
	}
	all, err := alone.Expand(t.Context(), kindRef(t, "*.s3.example.org/v1"), nil)
	if err != nil || len(all) != 2 || all[0].String() != "Bucket.s3.example.org/v1" ||
		all[1].String() != "Object.s3.example.org/v1" {
		t.Errorf("%v, %v", all, err)
	}
	r, _ = alone.Rank(t.Context(), Request{Kind: kindRef(t, "Buckets.s3.exampel.org")})
	if err := alone.Err(t.Context(), r); err == nil ||
		!strings.Contains(fmt.Sprint(err), "no package that can be installed provides") {
		t.Error(err)
	}
}

// The numbers of published kinds and packages.
const corpusKinds, corpusPackages = 4587, 333

func corpusIndex(b testing.TB) *catalog.Catalog {
	var texts []string
	for p := range corpusPackages {
		var kinds strings.Builder
		for k := p; k < corpusKinds; k += corpusPackages {
			fmt.Fprintf(&kinds, " Kind%d.group%d.example.org/v1beta1", k, k%100)
		}
		var versions []string
		for v := range 65 {
			versions = append(versions, fmt.Sprintf("v1.%d.0:%s", v, kinds.String()))
		}
		texts = append(texts, fmt.Sprintf("org%03d/package %s", p, strings.Join(versions, ";")))
	}
	return indexOf(b, texts...)
}

// BenchmarkLookup measures the selection of a provider among all published kinds. The goal is less than a millisecond;
// the floor is one scan of all rows.
func BenchmarkLookup(b *testing.B) {
	index := corpusIndex(b)
	finder := &Finder{Sources: []Source{Catalog{Catalog: index}}}
	kind := kindRef(b, "Kind4000.group0.example.org/v1beta1")
	b.Run("select", func(b *testing.B) {
		for b.Loop() {
			r, err := finder.Rank(b.Context(), Request{Kind: kind})
			if err != nil || len(r.Order) != 1 {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			found := 0
			for i := range index.Kinds {
				if k := &index.Kinds[i]; kind.Matches(k.Group, k.Kind, k.Plural, k.Singular) {
					found++
				}
			}
			if found != 1 {
				b.Fatal(found)
			}
		}
	})
}

// TestALookupScansTheRowsOnce proves the cost of a lookup without a clock: it allocates for the rows of one API group
// only.
func TestALookupScansTheRowsOnce(t *testing.T) {
	finder := &Finder{Sources: []Source{Catalog{Catalog: corpusIndex(t)}}}
	kind := kindRef(t, "Kind4000.group0.example.org/v1beta1")
	allocations := testing.AllocsPerRun(10, func() {
		if _, err := finder.Rank(t.Context(), Request{Kind: kind}); err != nil {
			t.Fatal(err)
		}
	})
	// 46 kinds of 46 packages are in the group.
	if most := 46 * 60.0; allocations > most {
		t.Errorf("a lookup allocates %v times, at most %v are expected", allocations, most)
	}
}

// A version that does not work with the Crossplane that runs is dropped with the reason, from an index and from the
// cache.
func TestPackagesForAnotherCrossplaneAreDroppedWithAReason(t *testing.T) {
	index := indexOf(t, "acme/s3 v1.0.0: Bucket.s3.example.org/v1; v2.0.0: Bucket.s3.example.org/v1")
	versions := index.Histories[0].Versions
	versions[0].Crossplane, versions[1].Crossplane = ">=v1.14.0", ">=v2.0.0"
	cached := contentOf(t, "Provider", "Bucket", "{type: object}")
	cached.Meta.Crossplane = ">=v3.0.0"
	kind := kindRef(t, "Bucket.s3.example.org")
	for name, c := range map[string]struct {
		// running are the constraints that the version that runs satisfies.
		running []string
		ref     string
		dropped string
	}{
		"the newest": {
			[]string{">=v1.14.0", ">=v2.0.0"}, "xpkg.test/acme/s3:v2.0.0",
			"xpkg.test/other/s3: its version v1.0.0 requires Crossplane >=v3.0.0",
		},
		"an older one": {
			[]string{">=v1.14.0"}, "xpkg.test/acme/s3:v1.0.0",
			"xpkg.test/other/s3: its version v1.0.0 requires Crossplane >=v3.0.0",
		},
		"only the cached": {
			[]string{">=v3.0.0"}, "xpkg.test/other/s3:v1.0.0",
			"xpkg.test/acme/s3: its version v1.0.0 requires Crossplane >=v1.14.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Finder{
				Sources: []Source{Catalog{Catalog: index}},
				Load: func(context.Context) ([]Source, error) {
					return []Source{Packages{All: []Package{{Repository: "xpkg.test/other/s3", Version: "v1.0.0", Content: cached}}}},
						nil
				},
				Crossplane: func(context.Context) (func(string) bool, error) {
					return func(constraint string) bool { return slices.Contains(c.running, constraint) }, nil
				},
			}
			r, err := f.Rank(t.Context(), Request{Kind: kind})
			if err != nil || len(r.Order) != 1 || r.Order[0].Ref() != c.ref || len(r.Dropped) != 1 ||
				r.Dropped[0].Repository+": "+r.Dropped[0].Why != c.dropped {
				t.Errorf("%+v, dropped %+v, %v", r.Order, r.Dropped, err)
			}
		})
	}
	failing := &Finder{
		Sources:    []Source{Catalog{Catalog: index}},
		Crossplane: func(context.Context) (func(string) bool, error) { return nil, context.Canceled },
	}
	if _, err := failing.Rank(t.Context(), Request{Kind: kind}); !errors.Is(err, context.Canceled) {
		t.Errorf("an unknown version of Crossplane: %v", err)
	}
}

// The dependencies of a version are those that the index has for the version that a constraint selects.
func TestDependenciesOfTheSelectedVersion(t *testing.T) {
	c := indexOf(t, "top v1.0.0:;v1.1.0:;v2.0.0:")
	for i := range c.Histories[0].Versions {
		v := &c.Histories[0].Versions[i]
		v.Dependencies = []dependency.Dependency{{Package: "xpkg.test/base", Constraint: v.Tag}}
	}
	s := Catalog{Catalog: c}
	for constraint, want := range map[string]string{
		"": "v2.0.0", "<v2.0.0": "v1.1.0", "v1.0.0": "v1.0.0", ">=v3.0.0": "", "latest": "",
	} {
		got := ""
		for _, d := range s.Dependencies("xpkg.test/top", constraint) {
			got += d.Constraint
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", constraint, got, want)
		}
	}
	if got := s.Dependencies("xpkg.test/other", ""); got != nil {
		t.Errorf("got %v for an unknown package", got)
	}
}

// A package of another publisher is not selected alone in a group whose publisher has moved its kinds to another group,
// cannot be indexed any more, or is only stated by the index.
func TestFormerKindsAndOwnersCountAmongThePublishersOfAGroup(t *testing.T) {
	const squat = "evil/squat v1.0.0: Bx.gr.example.org/v1"
	for name, tc := range map[string]struct {
		packages []string
		owner    string
		kind     string
		isSure   bool
	}{
		"the only publisher": {[]string{squat}, "", "Bx.gr.example.org", true},
		"its own former kinds": {
			[]string{squat + "; v2.0.0: Bx.gr.example.org/v2 By.gr.example.org/v2; v3.0.0: Bx.gr.example.org/v3"}, "",
			"Bx.gr.example.org", true,
		},
		"the kinds have moved": {
			[]string{"acme/gr v1.0.0: Bx.gr.example.org/v1; v2.0.0: Bx.gr2.example.org/v1", squat}, "", "Bx.gr.example.org",
			false,
		},
		"another kind has moved": {
			[]string{"acme/gr v1.0.0: Other.gr.example.org/v1; v2.0.0: Bx.gr2.example.org/v1", squat}, "", "Bx.gr.example.org",
			false,
		},
		"the new group is not disputed": {
			[]string{"acme/gr v1.0.0: Bx.gr.example.org/v1; v2.0.0: Bx.gr2.example.org/v1", squat}, "", "Bx.gr2.example.org",
			true,
		},
		"all kinds of a group have moved": {[]string{
			"acme/gr v1.0.0: Bx.gr.example.org/v1; v2.0.0: Bx.gr2.example.org/v1", squat,
		}, "", "*.gr.example.org", false},
		"the owner has no package": {[]string{squat}, "xpkg.test/acme", "Bx.gr.example.org", false},
		"the owner has former kinds": {
			[]string{"acme/gr v1.0.0: Bx.gr.example.org/v1; v2.0.0: Bx.gr2.example.org/v1", squat}, "xpkg.test/acme",
			"Bx.gr.example.org", false,
		},
		"the owner provides the kind": {
			[]string{"acme/gr v1.0.0: Bx.gr.example.org/v1", squat}, "xpkg.test/acme/gr", "Bx.gr.example.org", true,
		},
		"a newest version that is not indexed": {
			[]string{"acme/gr v1.0.0: Bx.gr.example.org/v1; v2.0.0:", squat}, "", "Bx.gr.example.org", false,
		},
		"the former kind of another repository": {[]string{
			"evil/gr v1.0.0: Bx.gr.example.org/v1; v2.0.0: Bx.gr2.example.org/v1", squat,
		}, "", "Bx.gr.example.org", true},
	} {
		index := indexOf(t, tc.packages...)
		if tc.owner != "" {
			index.Config.Owners = []catalog.GroupOwner{{Group: "gr.example.org", Owner: tc.owner}}
		}
		f := &Finder{Sources: []Source{Catalog{Catalog: index, Name: "test"}}}
		all, err := f.RankTogether(t.Context(), []dependency.KindRef{kindRef(t, tc.kind)}, Request{})
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %v, %v", name, all, err)
		}
		if err := f.Err(t.Context(), all[0]); (err == nil) != tc.isSure || err != nil && !errors.Is(err, ErrAmbiguous) {
			t.Errorf("%s: selects %v because %q (%v)", name, all[0].Order, all[0].Decided, err)
		}
	}
}

// A package whose newest version does not define the kind is a candidate with the versions that do. It is selected
// alone only if no other package, and no other publisher, provides the kind.
func TestAKindThatOnlyOlderVersionsDefineHasACandidate(t *testing.T) {
	const moved = "acme/gr v1.0.0: Box.gr.example.org/v1beta1; v1.1.0: Box.gr.example.org/v1beta1 Box.gr.example.org/v1; v2.0.0: Box.gr2.example.org/v1"
	for name, tc := range map[string]struct {
		packages []string
		owner    string
		kind     string
		// selects is the first candidate, with its constraint; empty if the package has no candidate. IsSure reports that it
		// is selected alone.
		selects, constraint string
		isSure              bool
	}{
		"by its kind": {[]string{
			moved,
		}, "", "Box.gr.example.org", "xpkg.test/acme/gr:v1.1.0", ">=v1.0.0, <v2.0.0 || >=v1.1.0, <v2.0.0", true},
		"by its plural": {
			[]string{moved}, "", "boxes.gr.example.org/v1", "xpkg.test/acme/gr:v1.1.0", ">=v1.1.0, <v2.0.0", true,
		},
		"by its singular": {[]string{
			moved,
		}, "", "box.gr.example.org", "xpkg.test/acme/gr:v1.1.0", ">=v1.0.0, <v2.0.0 || >=v1.1.0, <v2.0.0", true},
		"in a version": {[]string{moved}, "", "Box.gr.example.org/v2", "", "", false},
		"a plural with ies": {
			[]string{"acme/gr v1.0.0: Proxy.gr.example.org/v1 Policy.gr.example.org/v1; v2.0.0: Other.gr2.example.org/v1"}, "",
			"policies.gr.example.org", "xpkg.test/acme/gr:v1.0.0", ">=v1.0.0, <v2.0.0", true,
		},
		"all kinds of the group": {[]string{moved}, "", "*.gr.example.org", "", "", false},
		"beside a squatter": {
			[]string{moved, "evil/squat v1.0.0: Box.gr.example.org/v1"}, "", "Box.gr.example.org", "xpkg.test/evil/squat:v1.0.0",
			">=v1.0.0", false,
		},
		"of the owner": {
			[]string{moved, "evil/squat v1.0.0: Box.gr.example.org/v1"}, "xpkg.test/acme", "Box.gr.example.org",
			"xpkg.test/acme/gr:v1.1.0", ">=v1.0.0, <v2.0.0 || >=v1.1.0, <v2.0.0", false,
		},
		"moved to another package": {
			[]string{"acme/boxes v1.0.0: Box.gr.example.org/v1", moved}, "", "Box.gr.example.org", "xpkg.test/acme/boxes:v1.0.0",
			">=v1.0.0", true,
		},
		"in two packages": {
			[]string{moved, "acme/old v1.0.0: Box.gr.example.org/v1; v2.0.0: Box.gr3.example.org/v1"}, "", "Box.gr.example.org",
			"xpkg.test/acme/", "", false,
		},
	} {
		index := indexOf(t, tc.packages...)
		if tc.owner != "" {
			index.Config.Owners = []catalog.GroupOwner{{Group: "gr.example.org", Owner: tc.owner}}
		}
		f := &Finder{Sources: []Source{Catalog{Catalog: index, Name: "test"}}}
		kind := kindRef(t, tc.kind)
		if kind.IsAll() {
			if got := f.Sources[0].Candidates(kind); len(got) > 0 {
				t.Errorf("%s: the candidates are %+v", name, got)
			}
			continue
		}
		r, err := f.Rank(t.Context(), Request{Kind: kind})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err = f.Err(t.Context(), r)
		if tc.selects == "" {
			if !errors.Is(err, ErrNoProvider) {
				t.Errorf("%s: the order is %+v (%v)", name, r.Order, err)
			}
			continue
		}
		if len(r.Order) == 0 || !strings.HasPrefix(r.Order[0].Ref(), tc.selects) ||
			tc.constraint != "" && r.Order[0].Constraint != tc.constraint {
			t.Errorf("%s: the order is %+v, want %s %s", name, r.Order, tc.selects, tc.constraint)
		}
		if (err == nil) != tc.isSure || err != nil && !errors.Is(err, ErrAmbiguous) {
			t.Errorf("%s: selects %v because %q (%v)", name, r.Order, r.Decided, err)
		}
	}
}
