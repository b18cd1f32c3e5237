package search_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/search"
	"github.com/xpkg-dev/xpkg/internal/testing/largecatalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

func build(t testing.TB, all ...catalog.Facts) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Build(catalog.Config{Name: "test"}, all)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func sample(t testing.TB) *catalog.Catalog {
	return build(
		t,
		largecatalog.Facts("provider-aws-s3", "Provider", "Bucket.s3.aws.example.org", "BucketPolicy.s3.aws.example.org", "ProviderConfig.aws.example.org", "VPCPeeringConnection.ec2.aws.example.org"),
		largecatalog.Facts("provider-gcp", "Provider", "Bucket.storage.gcp.example.org", "ProviderConfig.gcp.example.org"),
		largecatalog.Facts("provider-helm", "Provider", "Release.helm.example.org"),
		largecatalog.Facts("function-bucket", "Function", "Bucket.input.example.org"),
		largecatalog.Facts("provider-meta", "Provider", "Metabucket.meta.example.org"),
	)
}

func open(t testing.TB, path string, c *catalog.Catalog) *search.Database {
	t.Helper()
	d, err := search.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.Sync(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return d
}

func names(hits []catalog.Hit) []string {
	var out []string
	for _, h := range hits {
		name := h.Package.Repository
		if h.Kind != nil {
			name = h.Kind.Kind + "." + h.Kind.Group
		}
		out = append(out, name)
	}
	return out
}

func everything(string) bool { return true }

// TestResultsEqualTheSearchWithoutAServer compares the hits for words, parts of words and typing errors.
func TestResultsEqualTheSearchWithoutAServer(t *testing.T) {
	c := sample(t)
	d := open(t, filepath.Join(t.TempDir(), "search.db"), c)
	for _, text := range []string{
		"bucket", "buckets", "Bucket", "buck", "policy", "bucketpolicy", "peering", "peeringconnection", "vpcpeering", "bucketpolcy", "aws", "s3", "s3 bucket",
		"provider", "provider-gcp", "gcp bucket", "kind:Bucket", "kind:buckets", "kind:Bucket.s3.aws.example.org", "group:s3.aws.example.org", "group:*.aws.*",
		"provides:Bucket", "type:Function", "type:Provider bucket", "bucket.s3.aws.example.org", "buckets.s3.aws.example.org/v1", "helm release", "nothingatall",
		`"quoted"`, "a*b", "NEAR(", `"`, "=bucket", "", "relese", "group:*", "acme/provider-gcp",
		"ucket", "olicy", "onfig", "eering", "ucket olicy", "gcp ucket", "et", "elm elease", "type:Provider ucket", "p c",
	} {
		q, err := catalog.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Search(t.Context(), c, q, 0, everything)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if want := names(c.Search(q, 0)); !slices.Equal(names(got), want) {
			t.Errorf("%q: got %q, want %q", text, names(got), want)
		}
	}
}

// TestWordsOfTheTextsOfAPackageFindItsKinds has words that only the summary or the readme of a package has, together with a word of a kind.
func TestWordsOfTheTextsOfAPackageFindItsKinds(t *testing.T) {
	c := sample(t)
	for i := range c.Packages {
		p := &c.Packages[i]
		text := catalog.Text{Repository: p.Repository, Readme: "Opens in a zeppelin of " + p.Type}
		switch {
		case strings.HasSuffix(p.Repository, "/provider-gcp"):
			p.Summary = "Größe and harbours of ships"
		case strings.HasSuffix(p.Repository, "/provider-helm"):
			p.Summary, text.Readme = "Ships charts", "A balloon"
		}
		c.Texts = append(c.Texts, text)
	}
	d := open(t, filepath.Join(t.TempDir(), "search.db"), c)
	hidden := func(repository string) bool { return !strings.HasSuffix(repository, "/provider-gcp") }
	for _, text := range []string{
		"ships bucket", "größe bucket", "harbour providerconfig", "balloon release", "balloon bucket", "zeppelin vpcpeering", "zeppelin bucket type:Function",
		"ships kind:Bucket", "ships release charts",
	} {
		q, err := catalog.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Search(t.Context(), c, q, 0, everything)
		if want := names(c.Search(q, 0)); err != nil || !slices.Equal(names(got), want) {
			t.Errorf("%q: got %q, %v; want %q", text, names(got), err, want)
		}
		if got, err = d.Search(t.Context(), c, q, 0, hidden); err != nil || slices.ContainsFunc(got, func(h catalog.Hit) bool { return !hidden(h.Package.Repository) }) {
			t.Errorf("%q with hidden packages: got %q, %v", text, names(got), err)
		}
	}
	if want := names(c.Search(catalog.Query{Words: []string{"ships", "bucket"}}, 0)); !slices.Contains(want, "Bucket.storage.gcp.example.org") {
		t.Errorf("got %q", want)
	}
}

func TestHiddenPackagesDoNotChangeTheResults(t *testing.T) {
	all := sample(t)
	public := build(t, largecatalog.Facts("provider-gcp", "Provider", "Bucket.storage.gcp.example.org", "ProviderConfig.gcp.example.org"))
	dir := t.TempDir()
	d, want := open(t, filepath.Join(dir, "all.db"), all), open(t, filepath.Join(dir, "public.db"), public)
	visible := func(repository string) bool { return strings.HasSuffix(repository, "/provider-gcp") }
	for _, text := range []string{"bucket", "policy", "bucketpolcy", "provider", "type:Provider", "group:*.aws.*", ""} {
		q, err := catalog.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		a, err := d.Search(t.Context(), all, q, 0, visible)
		if err != nil {
			t.Fatal(err)
		}
		b, err := want.Search(t.Context(), public, q, 0, everything)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(names(a), names(b)) {
			t.Errorf("%q: got %q, want %q", text, names(a), names(b))
		}
	}
}

// TestHiddenWordsReplaceNoWords hides many names that are more similar to the word of a query, or contain it, than the name of a visible kind.
func TestHiddenWordsReplaceNoWords(t *testing.T) {
	var kinds []string
	for c := 'a'; c <= 'y'; c++ {
		kinds = append(kinds, "Aloo"+string(c)+".hidden.example.org", "A"+string(c)+"sloop.hidden.example.org")
	}
	all := build(t, largecatalog.Facts("hidden", "Provider", kinds...), largecatalog.Facts("shown", "Provider", "Zloop.example.org", "Zzsloop.example.org"))
	d := open(t, filepath.Join(t.TempDir(), "search.db"), all)
	visible := func(repository string) bool { return strings.HasSuffix(repository, "/shown") }
	for text, want := range map[string]string{"sloop": "Zzsloop.example.org", "aloop": "Zloop.example.org"} {
		q, err := catalog.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Search(t.Context(), all, q, 0, visible)
		if err != nil || !slices.Contains(names(got), want) {
			t.Errorf("%q: got %q, %v; want %s", text, names(got), err, want)
		}
	}
}

func TestChangesReplaceTheDocumentsOfAPackage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	d := open(t, path, sample(t))
	next := build(t, largecatalog.Facts("provider-gcp", "Provider", "Disk.storage.gcp.example.org"), largecatalog.Facts("provider-new", "Provider", "Bucket.new.example.org"))
	if err := d.Sync(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{"kind:Bucket": {"Bucket.new.example.org"}, "kind:Disk": {"Disk.storage.gcp.example.org"}, "policy": nil} {
		q, err := catalog.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Search(t.Context(), next, q, 0, everything)
		if err != nil || !slices.Equal(names(got), want) {
			t.Errorf("%q: %q, %v", text, names(got), err)
		}
	}
}

func TestADamagedDatabaseIsBuiltAgain(t *testing.T) {
	c := sample(t)
	for name, content := range map[string]string{"empty": "", "garbage": strings.Repeat("garbage", 1000), "truncated": "SQLite format 3\x00"} {
		path := filepath.Join(t.TempDir(), "search.db")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := open(t, path, c).Search(t.Context(), c, catalog.Query{Kind: "Release"}, 0, everything)
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %q, %v", name, names(got), err)
		}
	}
}

// A loss of power can damage any page of the file.
func TestADatabaseWithDamagedPagesIsBuiltAgain(t *testing.T) {
	c := sample(t)
	path := filepath.Join(t.TempDir(), "search.db")
	if err := open(t, path, c).Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for at := page; at < len(content); at += page {
		damaged := slices.Clone(content)
		copy(damaged[at:], bytes.Repeat([]byte{0xff}, 64))
		path := filepath.Join(t.TempDir(), "search.db")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		d := open(t, path, c)
		if err := d.RecordPublished(t.Context(), c, time.Now()); err != nil {
			t.Errorf("page %d: %v", at/page, err)
		}
		if err := d.RecordEntries(t.Context(), c, &catalog.Catalog{}); err != nil {
			t.Errorf("page %d: %v", at/page, err)
		}
		got, err := d.Search(t.Context(), c, catalog.Query{Kind: "Release"}, 0, everything)
		if err != nil || len(got) != 1 {
			t.Errorf("page %d: %q, %v", at/page, names(got), err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNamesAreFoundAmongManyKindsWithTheSameWord checks a common word, for which beginnings of words are not looked up.
func TestNamesAreFoundAmongManyKindsWithTheSameWord(t *testing.T) {
	var all []catalog.Facts
	for i := range 10 {
		var kinds []string
		for j := range 100 {
			kinds = append(kinds, fmt.Sprintf("BucketPolicy%d.p%d.example.org", j, i))
		}
		all = append(all, largecatalog.Facts(fmt.Sprintf("provider-%d", i), "Provider", kinds...))
	}
	all = append(all, largecatalog.Facts("zzz-provider", "Provider", "Bucket.z.example.org", "Bucketeer.z.example.org"))
	c := build(t, all...)
	d := open(t, filepath.Join(t.TempDir(), "search.db"), c)
	for text, want := range map[string]string{"bucket": "Bucket", "buckete": "Bucketeer", "bucketpolicy7": "BucketPolicy7"} {
		q, err := catalog.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := d.Search(t.Context(), c, q, 3, everything)
		if err != nil || len(hits) == 0 || hits[0].Kind == nil || hits[0].Kind.Kind != want {
			t.Errorf("%s: %v, %v; want %s first", text, names(hits), err, want)
		}
	}
}

// The times of a new database are those that authors state, unless they are in the future. Later versions have the times at which they were recorded.
func TestPublishedTimes(t *testing.T) {
	day := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	version := func(name, tag string, created time.Time) catalog.Facts {
		f := largecatalog.Facts(name, "Provider")
		f.Version.Tag, f.Version.Created = tag, created
		return f
	}
	path := filepath.Join(t.TempDir(), "search.db")
	old, future := version("provider-old", "v1.0.0", day.AddDate(-3, 0, 0)), version("provider-future", "v1.0.0", day.AddDate(50, 0, 0))
	repository := old.Repository
	d := open(t, path, build(t, old, future))
	check := func(repository string, want map[string]time.Time) {
		t.Helper()
		if got := d.Published(repository); !maps.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("%s: the times are %v, want %v", repository, got, want)
		}
	}
	record := func(now time.Time, all ...catalog.Facts) {
		t.Helper()
		if err := d.RecordPublished(t.Context(), build(t, all...), now); err != nil {
			t.Fatal(err)
		}
	}
	record(day, old, future)
	check(repository, map[string]time.Time{"v1.0.0": day.AddDate(-3, 0, 0)})
	check(future.Repository, map[string]time.Time{"v1.0.0": day})
	later := day.AddDate(0, 1, 0)
	all := []catalog.Facts{old, future, version("provider-old", "v0.9.0", time.Time{}), version("provider-old", "v1.1.0", day.AddDate(-9, 0, 0))}
	record(later, all...)
	want := map[string]time.Time{"v1.0.0": day.AddDate(-3, 0, 0), "v0.9.0": later, "v1.1.0": later}
	check(repository, want)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, path, build(t, all...))
	record(later.AddDate(1, 0, 0), all...)
	check(repository, want)
	record(later.AddDate(1, 0, 0), future)
	check(repository, nil)
}
