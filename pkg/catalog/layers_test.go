package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
	"github.com/xpkg-dev/xpkg/pkg/catalog/internal/frame"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// blobs is the storage of a registry.
type blobs map[oci.Digest][]byte

func (b blobs) add(t rapid.TB, image Image) Manifest {
	t.Helper()
	for _, blob := range image.Blobs {
		b[blob.Digest] = blob.Data
	}
	m, err := ParseManifest(image.Manifest.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (b blobs) fetch(d oci.Descriptor) ([]byte, error) {
	data, known := b[d.Digest]
	if !known {
		return nil, fmt.Errorf("there is no %s", d.Digest)
	}
	return data, nil
}

func numbered(c Catalog, sequence int64) Catalog {
	c.Config.Sequence = sequence
	return c
}

func encode(t rapid.TB, c Catalog) Image {
	t.Helper()
	image, err := Encode(&c)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func open(t rapid.TB, m Manifest, b blobs) *Reader {
	t.Helper()
	r, err := Open(m, b.fetch)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ignoreBase ignores what only an encoded catalog has.
var ignoreBase = cmpopts.IgnoreFields(Config{}, "Base", "Sources")

func same(t rapid.TB, want, got Catalog) {
	t.Helper()
	if d := cmp.Diff(
		want, got, cmpopts.EquateEmpty(), ignoreBase, cmp.Comparer(func(a, b oci.Digest) bool { return a == b }),
	); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}

func TestLayersRoundTripAndAreDeterministic(t *testing.T) {
	race.SkipSequential(t)
	rapid.Check(t, func(t *rapid.T) {
		c := numbered(build(t, drawAll(t)), 1)
		image := encode(t, c)
		if again := encode(t, c); !bytes.Equal(image.Manifest.Raw, again.Manifest.Raw) {
			t.Fatal("two encodings of one catalog differ")
		}
		b := blobs{}
		got, err := open(t, b.add(t, image), b).Catalog()
		if err != nil {
			t.Fatal(err)
		}
		same(t, c, got)
		if again := encode(t, got); !bytes.Equal(image.Manifest.Raw, again.Manifest.Raw) {
			t.Fatal("the encoding changes after decoding")
		}
	})
}

func TestJournalEqualsRebuild(t *testing.T) {
	race.SkipSequential(t)
	rapid.Check(t, func(t *rapid.T) {
		b := blobs{}
		c := numbered(build(t, drawAll(t)), 1)
		m := b.add(t, encode(t, c))
		for i := range rapid.IntRange(1, 4).Draw(t, "updates") {
			next := numbered(build(t, drawAll(t)), int64(i+2))
			r := open(t, m, b)
			tail, err := r.OpenJournal()
			if err != nil {
				t.Fatal(err)
			}
			image, extended, err := Append(&m, tail, next.Config, Diff(&c, &next))
			if err != nil || !extended {
				t.Fatalf("extended: %t, %v", extended, err)
			}
			m, c = b.add(t, image), next
		}
		r := open(t, m, b)
		got, err := r.Catalog()
		if err != nil {
			t.Fatal(err)
		}
		same(t, c, got)
		sameAnswers(t, &c, r)
		decoded := got
		for _, with := range []Catalog{{}, c, build(t, drawAll(t))} {
			if got, err = r.CatalogSharing(&with); err != nil {
				t.Fatal(err)
			}
			same(t, c, got)
		}
		if got, err = r.CatalogSharing(&decoded); err != nil || !got.SharesRows(&decoded) {
			t.Errorf("an equal catalog does not share its rows: %v", err)
		}
	})
}

// sameAnswers compares a reader with the catalog in memory.
func sameAnswers(t *rapid.T, c *Catalog, r *Reader) {
	equalTo := func(what string, want, got any) {
		if d := cmp.Diff(
			want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b oci.Digest) bool { return a == b }),
		); d != "" {
			t.Fatalf("%s: -want +got:\n%s", what, d)
		}
	}
	for _, name := range append(slices.Clone(someKinds), "buckets", "none") {
		for _, group := range append(slices.Clone(someGroups), "") {
			got, err := r.Lookup(group, name)
			if err != nil {
				t.Fatal(err)
			}
			equalTo("lookup of "+name, c.Lookup(group, name), got)
		}
	}
	for _, text := range []string{"bucket", "policy", "p1", "role kind:Role", "kind:buckets", "group:iam.*", "bukcet", "type:Provider", "provides:user", "a bucket", "users", "buckt", "polciy", "usres", "rolle",
		"kind:bucket", "kind:role.iam.example.org", "kind:User." + someGroups[0], "bucket kind:user",
		"kind:role group:*" + someGroups[0]} {
		q, err := ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Search(q, 0)
		if err != nil {
			t.Fatal(err)
		}
		equalTo("search for "+text, c.Search(q, 0), got)
	}
	for i := range c.Histories {
		got, err := r.History(c.Histories[i].Repository)
		if err != nil {
			t.Fatal(err)
		}
		equalTo("history", &c.Histories[i], got)
	}
	equalTo("packages", c.Packages, r.Packages())
}

func TestSnapshotIsDueWhenTheJournalIsLong(t *testing.T) {
	race.SkipSequential(t)
	b := blobs{}
	facts := func(n int) []Facts {
		var all []Facts
		for i := range n {
			all = append(all, Facts{Repository: repositoryName(0), Head: &Head{}, Version: Version{
				Tag: fmt.Sprintf("v1.0.%d", i), Digest: oci.DigestOf([]byte{byte(i), byte(i >> 8)}),
				Crossplane: strings.Repeat("x", i%50),
			}})
		}
		return all
	}
	c := numbered(build(t, facts(1)), 1)
	m := b.add(t, encode(t, c))
	layers, due := 0, false
	for i := 2; !due && i < 3000; i++ {
		next := numbered(build(t, facts(i)), int64(i))
		tail, err := open(t, m, b).OpenJournal()
		if err != nil {
			t.Fatal(err)
		}
		image, extended, err := Append(&m, tail, next.Config, Diff(&c, &next))
		if err != nil {
			t.Fatal(err)
		}
		if due = !extended; due {
			break
		}
		if n := len(image.Manifest.Journal); n < len(m.Journal) || n > len(m.Journal)+1 {
			t.Fatalf("the journal has %d layers after %d", n, len(m.Journal))
		} else if n > 1 && image.Manifest.Journal[0].Digest != m.Journal[0].Digest {
			t.Fatal("a sealed journal layer changed")
		}
		m, c, layers = b.add(t, image), next, len(image.Manifest.Journal)
	}
	if !due || layers < 2 {
		t.Errorf("due: %t, layers: %d", due, layers)
	}
}

// drawn returns an index with a journal, all of whose parts have content.
func drawn(t testing.TB) (Manifest, blobs) {
	t.Helper()
	one := func(tag string, kinds ...string) Facts {
		f := Facts{
			Repository: repositoryName(1),
			Version:    Version{Tag: tag, Digest: oci.DigestOf([]byte(tag)), Created: time.Unix(9, 0).UTC()}, Head: &Head{},
		}
		f.Head.Text = &Text{Repository: f.Repository, Readme: "A readme", Kinds: []KindText{{
			Group: "s3.example.org", Kind: "Bucket", Fields: []string{"region"},
		}}}
		for _, k := range kinds {
			f.Head.Kinds = append(f.Head.Kinds, Kind{
				Kind: k, Group: "s3.example.org", Plural: strings.ToLower(k) + "s", Singular: strings.ToLower(k), Scope: "Cluster",
				Served: []string{"v1"},
				Role:   Provides, Repository: f.Repository, ShortNames: []string{"b"},
			})
		}
		f.normalize()
		return f
	}
	b := blobs{}
	first := []Facts{one("v1.0.0", "Bucket", "Policy"), one("v1.1.0", "Bucket")}
	from, to := numbered(build(t, first), 1), numbered(build(t, append(first, one("v1.2.0", "Bucket", "Role"))), 2)
	m := b.add(t, encode(t, from))
	image, extended, err := Append(&m, nil, to.Config, Diff(&from, &to))
	if err != nil || !extended {
		t.Fatalf("extended: %t, %v", extended, err)
	}
	return b.add(t, image), b
}

// readEverything reads all parts of an index in every way.
func readEverything(m Manifest, fetch Fetch) error {
	r, err := Open(m, fetch)
	if err != nil {
		return err
	}
	_, lookupErr := r.Lookup("", "bucket")
	_, searchErr := r.Search(Query{Words: []string{"bucket"}}, 0)
	_, fieldErr := r.Search(Query{Field: "reg"}, 0)
	_, historyErr := r.History(repositoryName(1))
	_, catalogErr := r.Catalog()
	return errors.Join(lookupErr, searchErr, fieldErr, historyErr, catalogErr)
}

func TestChangedAndTruncatedPartsAreRefused(t *testing.T) {
	m, b := drawn(t)
	if err := readEverything(m, b.fetch); err != nil {
		t.Fatal(err)
	}
	for digest, data := range b {
		used := slices.ContainsFunc(append(m.Layers(), m.Config), func(d oci.Descriptor) bool { return d.Digest == digest })
		for i := range data {
			if !used {
				break
			}
			changed := bytes.Clone(data)
			changed[i] ^= 1 << (i % 8)
			for code, content := range map[errcode.Code][]byte{ErrMixedIndex: changed, ErrTruncatedIndex: data[:i]} {
				err := readEverything(m, func(d oci.Descriptor) ([]byte, error) {
					if d.Digest == digest {
						return content, nil
					}
					return b.fetch(d)
				})
				if !errors.Is(err, code) {
					t.Fatalf("byte %d of %s: got %v, want %s", i, digest, err, code.Name)
				}
			}
		}
	}
}

// reseal returns the index with another part, whose digest is right.
func reseal(m Manifest, b blobs, change func(*Manifest, func(oci.MediaType, []byte) oci.Descriptor)) (Manifest, blobs) {
	all := blobs{}
	for d, data := range b {
		all[d] = data
	}
	add := func(mediaType oci.MediaType, data []byte) oci.Descriptor {
		blob := newBlob(mediaType, data)
		all[blob.Digest] = data
		return blob.Descriptor
	}
	change(&m, add)
	config, _ := ParseConfig(b[m.Config.Digest])
	config.Base = m.base()
	m.Config = add(MediaTypeConfig, encodeJSON(config))
	m.encode()
	return m, all
}

func TestLiesOfAHostileIndexAreRefused(t *testing.T) {
	m, b := drawn(t)
	bomb, err := frame.Encode(make([]byte, 200<<20))
	if err != nil {
		t.Fatal(err)
	}
	pack := func(s string) []byte {
		packed, err := frame.Encode([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	kinds := b[m.Kinds.Digest]
	lie := func(change func([]byte)) []byte {
		c := bytes.Clone(kinds)
		change(c)
		return c
	}
	key := bytes.Index(kinds, []byte("Bucket\t"))
	for name, change := range map[string]func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor){
		"bomb of packages": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Packages = add(MediaTypePackages, bomb)
		},
		"bomb of histories": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Shards = []oci.Descriptor{add(MediaTypeHistory, bomb), m.Shards[1], m.Shards[2], m.Shards[3]}
		},
		"bomb of events": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Journal = []oci.Descriptor{add(MediaTypeJournal, bomb)}
		},
		"bomb of texts": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			d := add(MediaTypeText, bomb)
			m.Text = &d
		},
		"key of the skip table": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Kinds = add(MediaTypeKinds, lie(func(c []byte) { c[key] = 'A' }))
		},
		"sizes of the skip table": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Kinds = add(MediaTypeKinds, lie(func(c []byte) { c[10]++ }))
		},
		"number of lines": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Kinds = add(MediaTypeKinds, lie(func(c []byte) { c[key-2]++ }))
		},
		"no skip table": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Kinds = add(MediaTypeKinds, pack("Bucket\ts3.example.org\t\t\tC\tv1\tp\t0\tv1.0.0\n"))
		},
		"escape in a repository": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Packages = add(MediaTypePackages, pack(`{"n":"registry.example.org/\u001b[31m"}`+"\n"))
		},
		"packages out of order": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Packages = add(MediaTypePackages, pack(`{"n":"r.example.org/b"}`+"\n"+`{"n":"r.example.org/a"}`+"\n"))
		},
		"event of another package": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Journal = []oci.Descriptor{
				add(MediaTypeJournal, pack(`{"e":"update","n":"r.example.org/a","package":{"n":"r.example.org/b"}}`+"\n")),
			}
		},
		"unknown event": func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			m.Journal = []oci.Descriptor{add(MediaTypeJournal, pack(`{"e":"explode","n":"r.example.org/a"}`+"\n"))}
		},
		"counts": func(m *Manifest, _ func(oci.MediaType, []byte) oci.Descriptor) { m.Journal = nil },
	} {
		t.Run(name, func(t *testing.T) {
			m, b := reseal(m, b, change)
			if err := readEverything(m, b.fetch); !errors.Is(err, ErrInvalidIndex) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestJournalOfAnotherSnapshotIsRefused(t *testing.T) {
	m, b := drawn(t)
	other := encode(
		t, numbered(build(t, []Facts{{Repository: repositoryName(2), Version: Version{Tag: "v1.0.0"}, Head: &Head{}}}), 1),
	)
	m2 := b.add(t, other)
	m.Packages = m2.Packages
	m.encode()
	if err := readEverything(m, b.fetch); !errors.Is(err, ErrMixedIndex) {
		t.Errorf("got %v", err)
	}
}

func TestOtherArtifactsAreNoIndex(t *testing.T) {
	image := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"` +
		oci.DigestOf([]byte("x")).String() + `","size":1},"layers":[]}`
	if _, err := ParseManifest([]byte(image)); !errors.Is(err, ErrNotAnIndex) {
		t.Errorf("got %v", err)
	}
}

func TestReplaceEqualsRebuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawAll(t)
		c := build(t, facts)
		added := drawFacts(t, rapid.IntRange(0, 3).Draw(t, "of"), "v9.0.0")
		byRepository := func(f Facts) bool { return f.Repository == added.Repository }
		known, err := c.FactsFrom(added.Repository)
		if err != nil {
			t.Fatal(err)
		}
		// The newest and the highest version are read again.
		for i := range known {
			j := slices.IndexFunc(facts, func(f Facts) bool { return byRepository(f) && f.Version.Tag == known[i].Version.Tag })
			known[i].Head = facts[j].Head
		}
		e, err := NewEntry(append(known, added))
		if err != nil {
			t.Fatal(err)
		}
		got := c.Replace(map[string]*Entry{added.Repository: e})
		same(t, build(t, append(facts, added)), got)
		if again := got.Replace(map[string]*Entry{
			added.Repository: e, "registry.example.org/acme/missing": nil,
		}); !again.SharesRows(&got) {
			t.Error("a catalog with the same entry has other lists")
		}
	})
}

func FuzzReader(f *testing.F) {
	m, b := drawn(f)
	for _, d := range append(m.Layers(), m.Config) {
		f.Add(b[d.Digest], string(d.MediaType))
	}
	f.Fuzz(func(t *testing.T, data []byte, mediaType string) {
		m, all := reseal(m, b, func(m *Manifest, add func(oci.MediaType, []byte) oci.Descriptor) {
			switch d := add(oci.MediaType(mediaType), data); oci.MediaType(mediaType) {
			case MediaTypePackages:
				m.Packages = d
			case MediaTypeKinds:
				m.Kinds = d
			case MediaTypeHistory:
				m.Shards = []oci.Descriptor{d, d, d, d}
			case MediaTypeText:
				m.Text = &d
			case MediaTypeJournal:
				m.Journal = []oci.Descriptor{d}
			case MediaTypeConfig:
				_, _ = ParseConfig(data)
			}
		})
		if err := readEverything(m, all.fetch); err != nil && !errcode.Known(err) {
			t.Errorf("an error without a code: %v", err)
		}
	})
}

func FuzzParseManifest(f *testing.F) {
	m, _ := drawn(f)
	f.Add(m.Raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := ParseManifest(raw)
		if err != nil {
			if !errcode.Known(err) {
				t.Errorf("an error without a code: %v", err)
			}
			return
		}
		if n := len(m.Shards); !isShardCount(n) {
			t.Errorf("%d shards", n)
		}
	})
}

// Authors state any time of their versions and statuses. A time that cannot be written in UTC is no time, and does not
// damage an index.
func TestTimesThatCannotBeWritten(t *testing.T) {
	for _, text := range []string{"9999-12-31T23:59:59-23:00", "0000-01-01T00:00:00+23:00"} {
		created, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		status, err := ParseStatus([]byte(`{"state":"deprecated","tag":"v1.0.0","digest":"` + oci.DigestOf(nil).String() +
			`","since":"` + text + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		pkg := &xpkg.Package{Meta: xpkg.Meta{Kind: xpkg.Provider, Name: "a"}}
		f, err := FactsOf(repositoryName(1), "v1.0.0", oci.DigestOf(nil), created, pkg)
		if err != nil {
			t.Fatal(err)
		}
		f.Version.Status = status.Normalize()
		b := blobs{}
		m := b.add(t, encode(t, numbered(build(t, []Facts{f}), 1)))
		if err := readEverything(m, b.fetch); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	row := wireVersion{Tag: "v1.0.0", Status: &Status{
		State: Yanked, Since: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -3600*2)),
	}}
	v, err := row.version()
	if err != nil || encodeJSON(toWire(&v)) == nil {
		t.Errorf("the row is read as %+v, %v, and written as %q", v, err, encodeJSON(toWire(&v)))
	}
}

// FuzzContent compresses its input, so that the decoders behind the compression are reached.
func FuzzContent(f *testing.F) {
	f.Add(`{"n":"r.example.org/a","l":"v1.0.0"}`+"\n", 0)
	f.Add(`{"p":"r.example.org/a","v":1,"k":1}`+"\n"+`{"v":"v1.0.0"}`+"\n"+
		`{"g":"g.example.org","k":"K","a":[["v1","v1.0.0"]]}`+"\n", 1)
	f.Add(`{"n":"r.example.org/a","k":[{"g":"g","k":"k","f":["a"]}]}`+"\n", 2)
	f.Add(`{"e":"publish","n":"r.example.org/a","v":"v1","version":{"v":"v1"},"kinds":["K\tg.example.org\t\t\tC\tv1\tp\t0\tv1"]}`+
		"\n", 3)
	f.Fuzz(func(t *testing.T, text string, layer int) {
		packed, err := frame.Encode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		switch layer {
		case 0:
			_, _ = decodePackages(packed)
		case 1:
			if all, err := decodeShard(packed, 0, 1); err == nil {
				for i := range all {
					_, _ = all[i].served()
				}
			}
		case 2:
			_, _ = decodeTexts(packed)
		case 3:
			if events, _, err := decodeEvents(packed, 1<<20); err == nil {
				_, _ = Fold(&Catalog{}, events)
			}
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add(
		`{"state":"yanked","tag":"v1.0.0","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000001"}`,
	)
	f.Add(
		`{"state":"yanked","tag":"v1.0.0","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000001","since":"9999-12-31T23:59:59-23:00"}`,
	)
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseStatus([]byte(text)); err == nil {
			again, err := EncodeStatus(s)
			if err != nil {
				t.Fatalf("%q is read, but cannot be written: %v", text, err)
			}
			s.Since = s.Since.Truncate(time.Second)
			if read, err := ParseStatus(again); err != nil || read != s {
				t.Errorf("%q is read as %+v, and its encoding %s as %+v, %v", text, s, again, read, err)
			}
		}
		_, _ = ParseRetractions(text)
		_, _ = ParseQuery(text)
	})
}

// TestRowsThatContradictTheFormatAreRefused changes one row of an index at a time. The layers themselves are valid.
func TestRowsThatContradictTheFormatAreRefused(t *testing.T) {
	const repository = "registry.example.org/acme/provider-gcp"
	read := func(change func(c *Catalog, p *Package, h *History)) error {
		c := numbered(sample(t), 1)
		change(&c, c.Package(repository), c.History(repository))
		b := blobs{}
		r, err := Open(b.add(t, encode(t, c)), b.fetch)
		if err != nil {
			return err
		}
		_, err = r.History(repository)
		return errors.Join(err, r.Check())
	}
	if err := read(func(*Catalog, *Package, *History) {}); err != nil {
		t.Fatal(err)
	}
	// A search reads no histories. What reads the whole index, such as `xpkg index verify`, checks all of them, and their
	// number.
	for name, change := range map[string]func(c *Catalog){
		"a number of versions":              func(c *Catalog) { c.Config.Counts.Versions++ },
		"an unknown version of any package": func(c *Catalog) { c.Histories[0].Kinds[0].Intervals[0].Since = "v7.0.0" },
		"a newest version of any package":   func(c *Catalog) { c.Packages[0].Latest = "v9.9.9" },
	} {
		c := numbered(sample(t), 1)
		change(&c)
		b := blobs{}
		r, err := Open(b.add(t, encode(t, c)), b.fetch)
		if err != nil || r.Check() != nil {
			t.Errorf("%s: a search refuses it: %v", name, err)
			continue
		}
		if _, err := r.Catalog(); !errors.Is(err, ErrInvalidIndex) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(c *Catalog, p *Package, h *History){
		"a title of two lines": func(_ *Catalog, p *Package, _ *History) { p.Title = "a\nb" },
		"a long summary":       func(_ *Catalog, p *Package, _ *History) { p.Summary = strings.Repeat("a", 301) },
		"a control character":  func(_ *Catalog, p *Package, _ *History) { p.Publisher = "\x1b[31m" },
		"a format character":   func(_ *Catalog, p *Package, _ *History) { p.ReplacedBy = "a\u202eb" },
		"another type":         func(_ *Catalog, p *Package, _ *History) { p.Type = "Boat" },
		"a negative rank":      func(_ *Catalog, p *Package, _ *History) { p.Rank = -1 },
		"a newest version":     func(_ *Catalog, p *Package, _ *History) { p.Latest = "v9.9.9" },
		"another state":        func(_ *Catalog, _ *Package, h *History) { h.Versions[0].Status = &Status{State: "fine"} },
		"an available version": func(_ *Catalog, _ *Package, h *History) { h.Versions[0].Status = &Status{State: Available} },
		"a message of two lines": func(_ *Catalog, _ *Package, h *History) {
			h.Versions[0].Status = &Status{State: Yanked, Message: "a\nb"}
		},
		"an unknown version":   func(_ *Catalog, _ *Package, h *History) { h.Kinds[0].Intervals[0].Since = "v7.0.0" },
		"a number of kinds":    func(c *Catalog, _ *Package, _ *History) { c.Config.Counts.Kinds++ },
		"a number of packages": func(c *Catalog, _ *Package, _ *History) { c.Config.Counts.Packages++ },
	} {
		if err := read(change); !errors.Is(err, ErrInvalidIndex) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
