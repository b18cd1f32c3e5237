package catalog

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/spelling"
)

// sample returns a small catalog.
func sample(t *testing.T) Catalog {
	t.Helper()
	facts := func(repository string, typ string, kinds ...string) Facts {
		f := Facts{Repository: "registry.example.org/acme/" +
			repository, Version: Version{Tag: "v1.0.0"}, Head: &Head{Package: Package{Type: typ}}}
		for _, name := range kinds {
			kind, group, _ := strings.Cut(name, ".")
			f.Head.Kinds = append(f.Head.Kinds, Kind{
				Kind: kind, Group: group, Plural: strings.ToLower(kind) + "s", Singular: strings.ToLower(kind), Scope: "Cluster",
				Served: []string{"v1"},
				Role:   Provides, Repository: f.Repository,
			})
		}
		f.normalize()
		return f
	}
	return build(t, []Facts{
		facts(
			"provider-aws-s3", "Provider", "Bucket.s3.aws.example.org", "BucketPolicy.s3.aws.example.org",
			"ProviderConfig.aws.example.org",
		),
		facts("provider-gcp", "Provider", "Bucket.storage.gcp.example.org", "ProviderConfig.gcp.example.org"),
		facts("provider-helm", "Provider", "Release.helm.example.org"),
		facts("function-bucket", "Function", "Bucket.input.example.org"),
	})
}

func names(hits []Hit) []string {
	var out []string
	for _, h := range hits {
		if h.Kind != nil {
			out = append(out, h.Kind.Kind+"."+h.Kind.Group)
		} else {
			out = append(out, h.Package.Repository[strings.LastIndexByte(h.Package.Repository, '/')+1:])
		}
	}
	return out
}

func TestSearchRanksExactKindsFirst(t *testing.T) {
	c := sample(t)
	for query, want := range map[string][]string{
		"bucket": {
			"Bucket.input.example.org", "Bucket.s3.aws.example.org", "Bucket.storage.gcp.example.org",
		},
		"buckets": {
			"Bucket.input.example.org", "Bucket.s3.aws.example.org", "Bucket.storage.gcp.example.org",
		},
		"bucketpolicy":                 {"BucketPolicy.s3.aws.example.org"},
		"policy":                       {"BucketPolicy.s3.aws.example.org"},
		"helm":                         {"provider-helm", "Release.helm.example.org"},
		"bucket gcp":                   {"Bucket.storage.gcp.example.org"},
		"bucketpolcy":                  {"BucketPolicy.s3.aws.example.org"},
		"kind:Bucket group:*.aws.*":    {"Bucket.s3.aws.example.org"},
		"buckets.s3.aws.example.org":   {"Bucket.s3.aws.example.org"},
		"Bucket.s3.aws.example.org/v1": {"Bucket.s3.aws.example.org"},
		"type:Provider provides:bucket": {
			"provider-aws-s3", "provider-gcp", "Bucket.s3.aws.example.org", "Bucket.storage.gcp.example.org",
		},
		"kind:Bucket type:function":      {"Bucket.input.example.org"},
		"nothingsimilar":                 nil,
		"Bucket.s3.aws.example.org/v1x9": nil,
	} {
		q, err := ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got := names(c.Search(q, 0))
		if !slices.Equal(got[:min(len(got), len(want))], want) || want == nil && len(got) > 0 {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}

// A package that has only development versions follows one with a release that matches equally.
func TestSearchRanksReleasesFirst(t *testing.T) {
	var facts []Facts
	for repository, tag := range map[string]string{
		"registry.example.org/dev/tides": "v0.0.0-dev.x1", "registry.example.org/up/tides": "v2.0.0",
	} {
		facts = append(facts, Facts{Repository: repository, Version: Version{
			Tag: tag,
		}, Head: &Head{Package: Package{Type: "Provider"}, Kinds: []Kind{{
			Kind: "Tide", Group: "reef.test", Plural: "tides", Singular: "tide", Scope: "Cluster", Served: []string{"v1"},
			Role: Provides, Repository: repository,
		}}}})
		facts[len(facts)-1].normalize()
	}
	c := build(t, facts)
	for _, query := range []string{"tide", "tides", "kind:Tide"} {
		q, err := ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if hits := c.Search(q, 0); len(hits) == 0 || hits[0].Package.Latest != "v2.0.0" {
			t.Errorf("%q: got %+v", query, hits)
		}
	}
}

func TestLookupFindsPluralsAndGroups(t *testing.T) {
	c := sample(t)
	for _, tc := range []struct {
		group, kind string
		want        int
	}{
		{"", "Bucket", 3}, {"", "bucket", 3}, {"", "BUCKETS", 3}, {"s3.aws.example.org", "Bucket", 1},
		{"none.example.org", "Bucket", 0}, {"", "Buck", 0},
	} {
		if got := c.Lookup(tc.group, tc.kind); len(got) != tc.want {
			t.Errorf("Lookup(%q, %q) = %+v", tc.group, tc.kind, got)
		}
	}
}

// TestANameOfAKindHidesNoOtherKind searches for the plural and the short name of kinds, which another kind has as its
// name.
func TestANameOfAKindHidesNoOtherKind(t *testing.T) {
	f := Facts{Repository: "registry.example.org/acme/data", Version: Version{Tag: "v1.0.0"}, Head: &Head{Package: Package{
		Type: "Provider",
	}}}
	for _, k := range []Kind{
		{Kind: "Data", Group: "a.example.org", Plural: "datas", Singular: "data"},
		{Kind: "Datum", Group: "b.example.org", Plural: "data", Singular: "datum"},
		{Kind: "Disk", Group: "c.example.org", Plural: "disks", Singular: "disk", ShortNames: []string{"data"}},
	} {
		k.Role, k.Repository, k.Served = Provides, f.Repository, []string{"v1"}
		f.Head.Kinds = append(f.Head.Kinds, k)
	}
	f.normalize()
	c := numbered(build(t, []Facts{f}), 1)
	b := blobs{}
	r := open(t, b.add(t, encode(t, c)), b)
	for query, want := range map[string]string{
		"kind:data": "Data.a.example.org", "kind:data.b.example.org": "Datum.b.example.org",
		"kind:data.c.example.org":       "Disk.c.example.org",
		"kind:data group:*.example.org": "Data.a.example.org", "kind:data group:b.example.org": "Datum.b.example.org",
		"disk kind:data": "Disk.c.example.org",
		"kind:datum":     "Datum.b.example.org",
	} {
		q, err := ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := r.Search(q, 0)
		if got := names(hits); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%q finds %q in the layers: %v", query, got, err)
		}
		if got := names(c.Search(q, 0)); !slices.Equal(got, []string{want}) {
			t.Errorf("%q finds %q", query, got)
		}
	}
}

func TestPartsOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"Bucket": "bucket", "BucketPolicy": "bucket policy", "VPCPeeringConnection": "vpc peering connection",
		"DBInstance": "db instance",
		"XNetwork":   "x network", "IPv4Address": "i pv4 address", "VPC": "vpc", "": "", "lower": "lower",
		"A\u0130Bc": "ai bc",
	} {
		names := namesOf(&Kind{Kind: name})
		if got := strings.Join(slices.Collect(names.parts()), " "); got != want {
			t.Errorf("the parts of %q are %q, want %q", name, got, want)
		}
	}
}

func TestUnknownPrefixesAreRefused(t *testing.T) {
	for _, q := range []string{
		"colour:red", "kind:", "kind:a kind:b", strings.Repeat("a ", 17), strings.Repeat("a", 2000),
	} {
		if _, err := ParseQuery(q); err == nil {
			t.Errorf("%.40q is accepted", q)
		}
	}
}

// TestWordsAreSimilarByTheirDistance compares words of few letters, which often have the same ones in another order.
func TestWordsAreSimilarByTheirDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[abcE\u00e9]{4,12}")
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		most := 1
		if min(len(a), len(b)) >= 8 {
			most = 2
		}
		if got, want := similar(a, b), spelling.Distance(a, b) <= most; got != want {
			t.Errorf("similar(%q, %q) is %t", a, b, got)
		}
	})
}

// TestFilterOfSimilarLinesOmitsNoMatch compares the filter with the match of the kind that the line contains.
func TestFilterOfSimilarLinesOmitsNoMatch(t *testing.T) {
	matches := 0
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching("[AB\u0130][ab1]{2,8}")
		k := Kind{Kind: part.Draw(t, "first") +
			part.Draw(t, "second"), Group: "example.org", Scope: "Cluster", Served: []string{"v1"}, Role: Provides}
		k.Plural = rapid.SampledFrom([]string{strings.ToLower(k.Kind) + "s", "abababbas"}).Draw(t, "plural")
		names := namesOf(&k)
		word := rapid.SampledFrom(append(slices.Collect(names.parts()), names.lower, k.Plural)).Draw(t, "name")
		for range rapid.IntRange(1, 2).Draw(t, "errors") {
			at := rapid.IntRange(0, len(word)-1).Draw(t, "position")
			word = strings.ToLower(word[:at] +
				rapid.SampledFrom([]string{"", "b", "x", word[at:at+1] + "x"}).Draw(t, "instead") + word[at+1:])
		}
		if names.match(word, false) > 0 || names.match(word, true) == 0 {
			return
		}
		matches++
		if line := kindLine(&k, 0); !similarLines(word)(line) {
			t.Errorf("the filter for %q omits %q", word, line)
		}
	})
	if matches == 0 {
		t.Error("no word is similar")
	}
}
