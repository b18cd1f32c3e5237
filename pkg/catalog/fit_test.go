package catalog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// leftOut returns the repositories that do not fit into a number of bytes.
func leftOut(sizes map[string]int, names []string, limit int) []string {
	l := layer{limit: limit}
	for _, name := range names {
		l.add(name, sizes[name], 0)
	}
	var out []string
	l.share(func(repository string, _ int) { out = append(out, repository) })
	slices.Sort(out)
	return out
}

func TestALayerIsSharedByPrefixes(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes map[string]int
		want  string
	}{
		{"all fit", map[string]int{"r/a/x": 60, "r/b/y": 40}, ""},
		{"the largest of one prefix", map[string]int{"r/a/x": 50, "r/a/y": 40, "r/a/z": 60, "r/b/y": 1}, "r/a/z"},
		{"many small ones", map[string]int{"r/a/x": 40, "r/b/1": 30, "r/b/2": 30, "r/b/3": 30}, "r/b/3"},
		{"several prefixes of one publisher", map[string]int{
			"r/a/x": 45, "r/b/1/x": 30, "r/b/2/x": 30, "r/b/3/x": 20,
		}, "r/b/2/x"},
		{"two publishers below one prefix", map[string]int{"r/t/a/x": 40, "r/t/b/1": 40, "r/t/b/2": 41}, "r/t/b/2"},
		{"a package whose name is a prefix", map[string]int{"r/a": 80, "r/a/x": 30}, "r/a"},
		{"a package without a prefix", map[string]int{"r/a": 60, "r/b": 50, "r/c": 10}, "r/a"},
		{"a package that is too large alone", map[string]int{"r/a": 101, "r/b": 100}, "r/a"},
		{"equal ones", map[string]int{"r/a/1": 60, "r/a/2": 60}, "r/a/2"},
	} {
		names := slices.Sorted(func(yield func(string) bool) {
			for name := range c.sizes {
				if !yield(name) {
					return
				}
			}
		})
		if out := strings.Join(leftOut(c.sizes, names, 100), " "); out != c.want {
			t.Errorf("%s: %q is left out, want %q", c.name, out, c.want)
		}
	}
}

// The rest fits, the order does not matter, and a publisher with at most the share of each keeps everything, whatever
// the others have.
func TestALayerIsSharedFairly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		sizes, ofPublisher := map[string]int{}, map[string]int{}
		var names []string
		publishers := 1 + random.IntN(5)
		for range random.IntN(40) {
			publisher := fmt.Sprintf("p%d", random.IntN(publishers))
			name := "r/" + publisher
			for range random.IntN(4) {
				name += fmt.Sprintf("/%d", random.IntN(4))
			}
			if sizes[name] > 0 {
				continue
			}
			sizes[name] = 1 + random.IntN(1<<random.IntN(10))
			ofPublisher[publisher] += sizes[name]
			names = append(names, name)
		}
		limit := 1 + random.IntN(2000)
		out := leftOut(sizes, names, limit)
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		if again := leftOut(sizes, names, limit); !slices.Equal(out, again) {
			t.Fatalf("%v, limit %d: %q and %q are left out", sizes, limit, out, again)
		}
		rest := 0
		for name, size := range sizes {
			if !slices.Contains(out, name) {
				rest += size
			}
		}
		if rest > limit {
			t.Fatalf("%v, limit %d: %d bytes remain without %q", sizes, limit, rest, out)
		}
		for _, name := range out {
			publisher, _, _ := strings.Cut(strings.TrimPrefix(name, "r/"), "/")
			if ofPublisher[publisher] <= limit/len(ofPublisher) {
				t.Fatalf(
					"%v, limit %d: %s is left out although its publisher has only %d bytes", sizes, limit, name,
					ofPublisher[publisher],
				)
			}
		}
	}
}

// neighbours returns repositories below a prefix whose histories are always in one layer.
func neighbours(prefix string, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ {
		if name := fmt.Sprintf("%s/p%d", prefix, i); shardOf(name, maxShards) == 0 {
			out = append(out, name)
		}
	}
	return out
}

// inRepository returns facts for another repository.
func inRepository(repository string, facts []Facts) []Facts {
	for i := range facts {
		facts[i].Repository, facts[i].Head.Package.Repository = repository, repository
		for j := range facts[i].Head.Kinds {
			facts[i].Head.Kinds[j].Repository = repository
		}
	}
	return facts
}

// A publisher has packages of which three together do not fit into a history layer. The index contains the others, in
// any order of the facts.
func TestPackagesThatShareALayerFit(t *testing.T) {
	race.SkipSequential(t)
	large, small := neighbours("registry.example.org/many", 4), neighbours("registry.example.org/acme", 1)[0]
	var facts []Facts
	for i, repository := range large {
		facts = append(facts, inRepository(repository, tagged(8, func(j int, tag string) Facts {
			f := sized(tag, 0, maxDependencies)
			for k := range f.Version.Dependencies[:5*i] {
				f.Version.Dependencies[k].Constraint += ">=1 "
			}
			f.Version.Digest = oci.DigestOf([]byte(repository + tag))
			return f
		}))...)
	}
	facts = append(facts, inRepository(small, tagged(3, func(_ int, tag string) Facts { return sized(tag, 2, 2) }))...)
	c := build(t, facts)
	fitted := c.Fit()
	var reasons []string
	for i := range fitted.Packages {
		if e := fitted.Packages[i].Error; e != nil {
			reasons = append(reasons, fitted.Packages[i].Repository+" "+e.Code)
			if !strings.Contains(e.Message, "in the same layer have more than 16777216 bytes together") {
				t.Error(e.Message)
			}
		}
	}
	want := []string{large[2] + " " + ErrUnindexable.Name, large[3] + " " + ErrUnindexable.Name}
	slices.Sort(want)
	if !slices.Equal(reasons, want) {
		t.Errorf("%q are left out, want %q", reasons, want)
	}
	if again := fitted.Fit(); !again.SharesRows(&fitted) {
		t.Error("a catalog that fits is changed")
	}
	image := encode(t, numbered(fitted, 1))
	slices.Reverse(facts)
	reversed := build(t, facts)
	if again := encode(t, numbered(reversed.Fit(), 1)); !bytes.Equal(again.Manifest.Raw, image.Manifest.Raw) {
		t.Error("the order of the facts changes the index")
	}
	b := blobs{}
	m := b.add(t, image)
	if err := readEverything(m, b.fetch); err != nil {
		t.Fatal(err)
	}
	if h := open(t, m, b); h.Package(small).Error != nil || h.Package(large[0]).Error != nil {
		t.Error("a package that fits is left out")
	}

	// A package that is removed gives its space to another one.
	without := build(t, slices.DeleteFunc(slices.Clone(facts), func(f Facts) bool { return f.Repository == large[0] }))
	next := c.Replace(map[string]*Entry{large[0]: nil})
	next = next.Fit()
	if row := next.Package(large[2]); row.Error != nil {
		t.Errorf("%s is left out although there is space: %+v", large[2], row.Error)
	}
	if a, b := encode(
		t, numbered(next, 2),
	), encode(t, numbered(without.Fit(), 2)); !bytes.Equal(a.Manifest.Raw, b.Manifest.Raw) {
		t.Error("an update has another result than a new index")
	}
}

// Histories in one layer of a small index are in several layers before a package is left out.
func TestAnIndexWithLargeHistoriesHasMoreLayers(t *testing.T) {
	race.SkipSequential(t)
	var facts []Facts
	for i := range 3 {
		var repository string
		for j := 0; shardOf(repository, maxShards) != 20*i; j++ {
			repository = fmt.Sprintf("registry.example.org/acme/p%d", j)
		}
		facts = append(
			facts,
			inRepository(repository, tagged(8, func(_ int, tag string) Facts { return sized(tag, 0, maxDependencies) }))...,
		)
	}
	c := build(t, facts)
	if fitted := c.Fit(); !fitted.SharesRows(&c) {
		t.Error("packages are left out")
	}
	m := encode(t, numbered(c, 1)).Manifest
	if n := len(m.Shards); n < 2 {
		t.Errorf("the index has %d history layers", n)
	}
}

// The bounds of sizes are never lower than the sizes.
func TestBoundsOfSizes(t *testing.T) {
	c := build(t, []Facts{sized("v1.0.0", 30, 30)})
	hostile := strings.Repeat("\u2028\x01\xff<\"\\", 20)
	c.Histories[0].Versions[0].Status = &Status{State: Yanked, Reason: Broken, Message: hostile, ReplacedBy: hostile}
	c.Histories[0].Versions[0].Error = &IndexError{Code: "Code", Message: hostile}
	c.Histories[0].Versions[0].Signatures = []string{hostile, ""}
	c.Histories[0].Versions[0].IndexLayer = oci.DigestOf(nil)
	for i := range c.Histories[0].Versions[0].Dependencies {
		c.Histories[0].Versions[0].Dependencies[i].Constraint = hostile[:i]
	}
	if size, bound := len(encodeShard([]*History{&c.Histories[0]})), c.Histories[0].bound(); size > bound {
		t.Errorf("the history has %d bytes, the bound is %d", size, bound)
	}
	texts := strings.Repeat(`"\`, 10)
	p := Package{
		Repository: repositoryName(1), Type: "Provider", Title: texts, Summary: texts, Keywords: []string{texts, texts, "a"},
		Aliases: []string{texts}, Category: texts, License: texts,
		Website: texts, SourceURL: texts, Publisher: texts, Verified: texts, Latest: "v1.0.0", Updated: time.Unix(1, 0).UTC(),
		Kinds: 20_000, Rank: 1_000_000, Deprecated: true, ReplacedBy: texts,
		Error: &IndexError{Code: texts, Message: texts},
	}
	if size := len(encodePackages([]Package{p})); size > p.bound() {
		t.Errorf("the row has %d bytes, the bound is %d", size, p.bound())
	}
	text := Text{Repository: repositoryName(1), Readme: texts, Kinds: []KindText{
		{Group: "g", Kind: "k", Description: texts, Fields: []string{texts, "a", "b"}}, {Group: "g", Kind: "l"},
	}}
	if size := len(encodeTexts([]Text{text})); size > text.bound() {
		t.Errorf("the text has %d bytes, the bound is %d", size, text.bound())
	}
}
