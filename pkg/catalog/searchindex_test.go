package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawCatalog returns a catalog of small packages, whose names and texts have few words, so that many match.
func drawCatalog(t *rapid.T) Catalog {
	word := rapid.SampledFrom([]string{
		"Bucket", "Policy", "Instance", "S3", "VPC", "Role", "Key", "Acces", "Proxies", "Glass", "Box", "A",
	})
	text := func(name string) string {
		return rapid.SampledFrom([]string{
			"", "", "Opens a zeppelin.", "The bucket of a KEY", "Gr\u00f6\u00dfe des \u0130nstance", "role policies",
		}).Draw(t, name)
	}
	var facts []Facts
	for p := range rapid.IntRange(1, 6).Draw(t, "packages") {
		repository := fmt.Sprintf("registry.example.org/acme/provider-%s-%d", strings.ToLower(word.Draw(t, "package")), p)
		f := Facts{Repository: repository, Version: Version{
			Tag: rapid.SampledFrom([]string{"v1.0.0", "v1.0.0-rc.1", "main"}).Draw(t, "tag"),
		}}
		f.Head = &Head{Package: Package{
			Repository: repository, Type: rapid.SampledFrom([]string{"Provider", "Function"}).Draw(t, "type"),
			Title: text("title"), Summary: text("summary"),
			Verified:   rapid.SampledFrom([]string{"", "signature"}).Draw(t, "verified"),
			Deprecated: rapid.Bool().Draw(t, "deprecated"),
		}, Text: &Text{Repository: repository, Readme: text("readme")}}
		for range rapid.IntRange(0, 8).Draw(t, "kinds") {
			k := Kind{Kind: word.Draw(t, "kind"), Scope: "Cluster", Served: []string{"v1"}, Repository: repository}
			k.Group = strings.ToLower(word.Draw(t, "group")) + ".example.org"
			k.Kind += rapid.SampledFrom([]string{"", "Policy", "Key", "Boxes"}).Draw(t, "end")
			k.Role = rapid.SampledFrom([]Role{Provides, Input}).Draw(t, "role")
			k.Singular = strings.ToLower(k.Kind)
			k.Plural = rapid.SampledFrom([]string{k.Singular + "s", "bucket", "keys"}).Draw(t, "plural")
			if rapid.Bool().Draw(t, "has a short name") {
				k.ShortNames = []string{strings.ToLower(word.Draw(t, "short name"))}
			}
			f.Head.Kinds = append(f.Head.Kinds, k)
		}
		f.normalize()
		for _, k := range f.Head.Kinds {
			fields := rapid.SampledFrom([][]string{nil, {"KeyRef", "region"}, {"key", "regionName"}}).Draw(t, "fields")
			f.Head.Text.Kinds = append(f.Head.Text.Kinds, KindText{
				Group: k.Group, Kind: k.Kind, Description: text("description"), Fields: fields,
			})
		}
		f.Head.Text.Kinds = slices.CompactFunc(
			f.Head.Text.Kinds, func(a, b KindText) bool { return a.Group == b.Group && a.Kind == b.Kind },
		)
		facts = append(facts, f)
	}
	c, err := Build(Config{Name: "test"}, facts)
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "without texts") {
		c.Texts = nil
	}
	return c
}

// drawQuery returns a query whose parts occur in the names and texts of a catalog, some of them incomplete or with a
// typing error.
func drawQuery(t *rapid.T, c *Catalog) Query {
	known := []string{
		"zeppelin", "gr\u00f6", "des", "provider", "acme/", "/v1", "s", "es", "ies", "bucket/v1", "bucket.", "none",
		"bucket\u017f",
	}
	for i := range c.Kinds {
		k := &c.Kinds[i]
		known = append(known, k.Kind, k.Plural, k.Group, k.Kind+"."+k.Group, k.Plural+"."+k.Group+"/v1")
	}
	for i := range c.Packages {
		known = append(known, c.Packages[i].Repository)
	}
	name := rapid.SampledFrom(known)
	var parts []string
	for range rapid.IntRange(0, 3).Draw(t, "words") {
		w := name.Draw(t, "word")
		switch at := rapid.IntRange(0, len(w)-1).Draw(t, "position"); rapid.IntRange(0, 4).Draw(t, "change") {
		case 0:
			w = w[:at] + w[at+1:]
		case 1:
			w = w[at:]
		case 2:
			w = w[:at+1]
		case 3:
			w += "s"
		}
		parts = append(parts, w)
	}
	for _, p := range []struct {
		prefix string
		value  *rapid.Generator[string]
	}{
		{"kind:", name}, {"provides:", name}, {"field:", rapid.SampledFrom([]string{"key", "REG", "none"})},
		{"type:", rapid.SampledFrom([]string{"provider", "Function", "None"})},
		{"group:", rapid.SampledFrom([]string{"*", "s3.example.org", "*.EXAMPLE.*", "b*", "none"})},
	} {
		if rapid.IntRange(0, 5).Draw(t, p.prefix) == 0 {
			parts = append(parts, p.prefix+p.value.Draw(t, "value"))
		}
	}
	q, err := ParseQuery(strings.ToValidUTF8(strings.Join(parts, " "), ""))
	if err != nil {
		t.Skip("the query is not valid")
	}
	return q
}

// selected returns a catalog with some of the packages.
func selected(c *Catalog, visible func(string) bool) *Catalog {
	out := &Catalog{Config: c.Config}
	for i := range c.Packages {
		if visible(c.Packages[i].Repository) {
			out.Packages = append(out.Packages, c.Packages[i])
		}
	}
	for i := range c.Kinds {
		if visible(c.Kinds[i].Repository) {
			out.Kinds = append(out.Kinds, c.Kinds[i])
		}
	}
	for i := range c.Texts {
		if visible(c.Texts[i].Repository) {
			out.Texts = append(out.Texts, c.Texts[i])
		}
	}
	return out
}

// TestSearchIndexEqualsTheSearchOfEachKind compares the hits in a catalog of which a client may know a part with
// those of a search of each kind in a catalog that has nothing else.
func TestSearchIndexEqualsTheSearchOfEachKind(t *testing.T) {
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := drawCatalog(t)
		x := NewSearchIndex(&c)
		hidden := map[string]bool{}
		for i := range c.Packages {
			hidden[c.Packages[i].Repository] = rapid.IntRange(0, 3).Draw(t, "hidden") == 0
		}
		visible := func(repository string) bool { return !hidden[repository] }
		part := selected(&c, visible)
		for range 10 {
			q := drawQuery(t, &c)
			limit := rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "limit")
			got, want := x.Search(q, limit, visible), part.Search(q, limit)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q (-search of each kind, +index):\n%s", q.Text, diff)
			}
			for _, h := range got {
				found[h.Why]++
			}
		}
	})
	for _, why := range []string{"kind", "prefix", "part", "group", "package", "text", "similar"} {
		if found[why] == 0 {
			t.Errorf("no hit is for the reason %s", why)
		}
	}
}

// TestSearchIsTheSameWithALimit has more hits than a search keeps.
func TestSearchIsTheSameWithALimit(t *testing.T) {
	c, err := Build(Config{Name: "test"}, synthetic(20, 1, 200))
	if err != nil {
		t.Fatal(err)
	}
	x := NewSearchIndex(&c)
	everything := func(string) bool { return true }
	for _, text := range []string{"group:*.p*", "e", "bucket", "provider-", "kind:keys", "type:Provider", ""} {
		q, err := ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		all := c.Search(q, 0)
		for _, limit := range []int{1, 20, 100, 1000} {
			want := all[:min(limit, len(all))]
			if diff := cmp.Diff(names(want), names(c.Search(q, limit))); diff != "" {
				t.Errorf("%q with the limit %d: %s", text, limit, diff)
			}
			if diff := cmp.Diff(names(want), names(x.Search(q, limit, everything))); diff != "" {
				t.Errorf("%q with the limit %d in the index: %s", text, limit, diff)
			}
		}
	}
}
