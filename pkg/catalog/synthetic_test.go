package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

var nouns = strings.Fields(`Access Account Alarm Alias Api App Attachment Backup Bucket Cache Certificate Client Cluster Config Connection
Container Database Dashboard Deployment Domain Endpoint Event File Firewall Function Gateway Group Host Identity Image Instance Key Lake Link List
Log Map Metric Model Mount Network Node Object Peering Permission Pipeline Policy Pool Project Proxy Queue Record Region Registry Replica Role Route
Rule Schedule Schema Secret Server Service Set Share Snapshot Stack Stage Storage Stream Subnet Table Task Template Token Topic Trigger User Vault
Version Volume Zone`)

// synthetic returns the facts of packages with versions, the newest of which has the given number of kinds. A tenth of
// the kinds appears during the versions.
func synthetic(packages, versions, kinds int) []Facts {
	r := rand.New(rand.NewPCG(1, 2))
	var out []Facts
	for p := range packages {
		repository := fmt.Sprintf(
			"registry.example.org/org%d/provider-%s-%d", p%97, strings.ToLower(nouns[r.IntN(len(nouns))]), p,
		)
		all := syntheticKinds(r, p, kinds, repository)
		created := int64(1_600_000_000 + r.IntN(50_000_000))
		for v := range versions {
			n := kinds - kinds/10*(versions-1-v)/max(1, versions-1)
			created += int64(r.IntN(3_000_000))
			f := Facts{Repository: repository, Served: servedBy(all[:n]), Version: Version{
				Tag: fmt.Sprintf("v%d.%d.%d", v/20, v/3%7, v%3+v/21*3), Crossplane: ">=v1.14.0-0", Kinds: n,
				Created: time.Unix(created, 0).UTC(),
				Digest:  oci.DigestOf(fmt.Append(nil, repository, v)),
			}}
			f.Head = &Head{
				Package: Package{Repository: repository, Type: "Provider", Title: fmt.Sprintf("Provider %d", p)}, Kinds: all[:n],
			}
			out = append(out, f)
		}
	}
	return out
}

func syntheticKinds(r *rand.Rand, p, kinds int, repository string) []Kind {
	seen := map[string]bool{}
	var out []Kind
	for len(out) < kinds {
		name := nouns[r.IntN(len(nouns))]
		for range r.IntN(3) {
			name += nouns[r.IntN(len(nouns))]
		}
		group := fmt.Sprintf("%s.p%d.example.org", strings.ToLower(nouns[r.IntN(20)]), p)
		if seen[name+group] || len(name) > maxLabel-1 {
			continue
		}
		seen[name+group] = true
		lower := strings.ToLower(name)
		out = append(out, Kind{
			Kind: name, Group: group, Plural: lower + "s", Singular: lower, Scope: "Cluster", Served: []string{"v1beta1"},
			Role: Provides, Repository: repository,
		})
	}
	return out
}

// encoded returns the encoded index of synthetic packages.
func encoded(t testing.TB, packages, versions, kinds int) (Catalog, Manifest, blobs) {
	t.Helper()
	c, err := Build(Config{Name: "synthetic"}, synthetic(packages, versions, kinds))
	if err != nil {
		t.Fatal(err)
	}
	c = numbered(c, 1)
	b := blobs{}
	return c, b.add(t, encode(t, c)), b
}

func TestIndexOfAThousandPackagesIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds 50,000 versions")
	}
	c, m, b := encoded(t, 1000, 50, 200)
	search := m.Packages.Size + m.Kinds.Size
	whole := search + int64(len(m.Raw)) + m.Config.Size
	for _, d := range m.Shards {
		whole += d.Size
	}
	t.Logf(
		"manifest %d, packages %d, kinds %d, whole %d bytes; %+v", len(m.Raw), m.Packages.Size, m.Kinds.Size, whole,
		c.Config.Counts,
	)
	t.Attr("search-bytes", strconv.FormatInt(search, 10))
	t.Attr("whole-bytes", strconv.FormatInt(whole, 10))
	t.Attr("manifest-bytes", strconv.Itoa(len(m.Raw)))
	t.Attr("layers", strconv.Itoa(len(m.Layers())))
	if search > 2<<20 || whole > 8<<20 || len(m.Raw) > 20<<10 || len(m.Layers()) > 100 {
		t.Errorf("search %d, whole %d, manifest %d bytes, %d layers", search, whole, len(m.Raw), len(m.Layers()))
	}

	// One publish costs a client that is up to date the manifest, the configuration and the last journal layer.
	repository := c.Packages[500].Repository
	facts, err := c.FactsFrom(repository)
	if err != nil {
		t.Fatal(err)
	}
	last := &facts[len(facts)-1]
	last.Head = &Head{Package: c.Packages[500], Kinds: c.KindsOf(repository)}
	added := *last
	added.Version.Tag, added.Version.Digest = "v9.0.0", oci.DigestOf([]byte("new"))
	e, err := NewEntry(append(facts, added))
	if err != nil {
		t.Fatal(err)
	}
	next := numbered(c.Replace(map[string]*Entry{repository: e}), 2)
	image, extended, err := Append(&m, nil, next.Config, Diff(&c, &next))
	if err != nil || !extended {
		t.Fatalf("extended: %t, %v", extended, err)
	}
	size := len(image.Manifest.Raw)
	for _, blob := range image.Blobs {
		size += len(blob.Data)
	}
	t.Logf("one publish: %d bytes, of which %d of events", size, image.Manifest.Journal[0].Size)
	t.Attr("publish-bytes", strconv.Itoa(size))
	if size > 24<<10 {
		t.Errorf("one publish costs %d bytes", size)
	}
	r := open(t, m, b)
	if kinds, err := r.Lookup("", c.Kinds[100_000].Kind); err != nil ||
		!slices.ContainsFunc(kinds, func(k Kind) bool { return k.Group == c.Kinds[100_000].Group }) {
		t.Errorf("a kind is not found: %v", err)
	}
}

// BenchmarkReader measures one search in an index of 200,000 kinds, from opening the layers.
func BenchmarkReader(b *testing.B) {
	_, m, all := encoded(b, 1000, 1, 200)
	for _, text := range []string{
		"kind:Bucket", "kind:BucketPolicy group:access.p5.example.org", "bucket", "bucket policy", "policy", "bukcetpolcy",
	} {
		q, err := ParseQuery(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := open(b, m, all)
				if _, err := r.Search(q, 20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
