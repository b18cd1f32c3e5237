package search_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/search"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// facts returns a package with kinds KIND.GROUP.
func facts(repository, typ string, kinds ...string) catalog.Facts {
	f := catalog.Facts{
		Repository: "registry.example.org/acme/" + repository, Version: catalog.Version{Tag: "v1.0.0", Kinds: len(kinds)},
		Head: &catalog.Head{Package: catalog.Package{Repository: "registry.example.org/acme/" + repository, Type: typ}},
	}
	for _, name := range kinds {
		kind, group, _ := strings.Cut(name, ".")
		f.Head.Kinds = append(f.Head.Kinds, catalog.Kind{
			Kind: kind, Group: group, Plural: strings.ToLower(kind) + "s", Singular: strings.ToLower(kind), Scope: "Cluster", Served: []string{"v1"},
			Role: catalog.Provides, Repository: f.Repository,
		})
		f.Served = append(f.Served, catalog.ServedKind{Group: group, Kind: kind, Versions: []string{"v1"}})
	}
	slices.SortFunc(f.Served, func(a, b catalog.ServedKind) int {
		return strings.Compare(a.Group+"\x00"+a.Kind, b.Group+"\x00"+b.Kind)
	})
	return f
}

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
		facts("provider-aws-s3", "Provider", "Bucket.s3.aws.example.org", "BucketPolicy.s3.aws.example.org", "ProviderConfig.aws.example.org", "VPCPeeringConnection.ec2.aws.example.org"),
		facts("provider-gcp", "Provider", "Bucket.storage.gcp.example.org", "ProviderConfig.gcp.example.org"),
		facts("provider-helm", "Provider", "Release.helm.example.org"),
		facts("function-bucket", "Function", "Bucket.input.example.org"),
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

func TestHiddenPackagesDoNotChangeTheResults(t *testing.T) {
	all := sample(t)
	public := build(t, facts("provider-gcp", "Provider", "Bucket.storage.gcp.example.org", "ProviderConfig.gcp.example.org"))
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

func TestChangesReplaceTheDocumentsOfAPackage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	d := open(t, path, sample(t))
	next := build(t, facts("provider-gcp", "Provider", "Disk.storage.gcp.example.org"), facts("provider-new", "Provider", "Bucket.new.example.org"))
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

// large returns a catalog with a number of packages with 200 kinds each, with a distribution of words as in real packages.
func large(t testing.TB, packages int) *catalog.Catalog {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // The numbers only have to be the same in every run.
	services := []string{"s3", "ec2", "rds", "iam", "sql", "storage", "network", "compute", "dns", "kafka", "redis", "monitor", "cdn", "vault", "queue"}
	nouns := []string{"Bucket", "Instance", "Policy", "Role", "Cluster", "Network", "Subnet", "Database", "User", "Group", "Topic", "Queue", "Key", "Rule", "Zone", "Record"}
	var all []catalog.Facts
	for i := range packages {
		var kinds []string
		for j := range 200 {
			kind := nouns[random.IntN(len(nouns))] + nouns[random.IntN(len(nouns))] + nouns[j%len(nouns)]
			kinds = append(kinds, fmt.Sprintf("%s%d.%s.cloud%d.example.org", kind, j/len(nouns), services[random.IntN(len(services))], i))
		}
		all = append(all, facts(fmt.Sprintf("provider-cloud%d-%s", i, services[i%len(services)]), "Provider", kinds...))
	}
	return build(t, all...)
}

// TestNamesAreFoundAmongManyKindsWithTheSameWord checks a common word, for which beginnings of words are not looked up.
func TestNamesAreFoundAmongManyKindsWithTheSameWord(t *testing.T) {
	var all []catalog.Facts
	for i := range 10 {
		var kinds []string
		for j := range 100 {
			kinds = append(kinds, fmt.Sprintf("BucketPolicy%d.p%d.example.org", j, i))
		}
		all = append(all, facts(fmt.Sprintf("provider-%d", i), "Provider", kinds...))
	}
	all = append(all, facts("zzz-provider", "Provider", "Bucket.z.example.org", "Bucketeer.z.example.org"))
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
