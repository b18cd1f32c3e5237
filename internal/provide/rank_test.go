package provide

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const s3 = "s3.example.org"

// bucket returns a candidate for Bucket of the group, from a repository without host.
func bucket(repository string, change ...func(*Candidate)) Candidate {
	c := Candidate{
		Repository: "xpkg.test/" + repository, Version: "v1.2.0", Constraint: ">=v1.0.0", Kind: "Bucket", Group: s3,
		Plural: "buckets", Singular: "bucket",
		Served: []string{"v1beta1"}, Type: "Provider", Cost: 25, Source: "main", Updated: 1000,
		Digest: oci.DigestOf([]byte(repository)),
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func owner(c *Candidate)    { c.OwnsGroup, c.Verified, c.Publisher = true, true, "Example" }
func verified(c *Candidate) { c.Verified, c.Publisher = true, "Verified Ltd" }
func claims(publisher string) func(*Candidate) {
	return func(c *Candidate) { c.Publisher = publisher }
}
func cost(n int) func(*Candidate) { return func(c *Candidate) { c.Cost = n } }
func priority(n int) func(*Candidate) {
	return func(c *Candidate) { c.Priority, c.Source = n, fmt.Sprintf("index%d", n) }
}
func content(text string) func(*Candidate) {
	return func(c *Candidate) { c.Digest = oci.DigestOf([]byte(text)) }
}
func role(r Role) func(*Candidate)          { return func(c *Candidate) { c.Role = r } }
func served(v ...string) func(*Candidate)   { return func(c *Candidate) { c.Served = v } }
func crds(names ...string) func(*Candidate) { return func(c *Candidate) { c.CRDs = names } }
func aliases(names ...string) func(*Candidate) {
	return func(c *Candidate) {
		for _, n := range names {
			c.Aliases = append(c.Aliases, "xpkg.test/"+n)
		}
	}
}
func renamed(to string) func(*Candidate) {
	return func(c *Candidate) { c.ReplacedBy = "xpkg.test/" + to }
}
func updated(seconds int) func(*Candidate) { return func(c *Candidate) { c.Updated = int64(seconds) } }
func unusable(why string) func(*Candidate) {
	return func(c *Candidate) { c.Version, c.Unusable = "", why }
}
func deprecated(c *Candidate) { c.Deprecated = true }
func named(kind, plural string) func(*Candidate) {
	return func(c *Candidate) { c.Kind, c.Plural, c.Singular = kind, plural, strings.ToLower(kind) }
}

// rankCase is a request with candidates and the expected choice.
type rankCase struct {
	kind       string
	recorded   string
	present    []string
	holders    map[string]string
	group      []Candidate // other kinds of the group
	candidates []Candidate
	// want is the selected repository, or the code of the error; reason or text is part of the reason or the error.
	want, text string
}

func (c rankCase) request(t *testing.T) Request {
	t.Helper()
	text := c.kind
	if text == "" {
		text = "Bucket." + s3
	}
	k, err := dependency.ParseKindRef(text)
	if err != nil {
		t.Fatal(err)
	}
	q := Request{
		Kind: k, Present: map[string]bool{}, Holders: c.holders,
		GroupPublishers: Publishers(append(slices.Clone(c.group), c.candidates...)),
	}
	if c.recorded != "" {
		q.Recorded = "xpkg.test/" + c.recorded
	}
	for _, p := range c.present {
		q.Present["xpkg.test/"+p] = true
	}
	return q
}

var describe = Describe{Command: func(c Candidate) string { return "xpkg install " + c.Ref() }}

// outcome returns the choice of a case, and the reason or the error.
func outcome(q Request, candidates []Candidate) (got, text string) {
	c, r, err := Choose(q, candidates, describe)
	if err != nil {
		return errcode.From(err).Code.Name, errcode.Message(err)
	}
	return strings.TrimPrefix(c.Repository, "xpkg.test/"), string(r.Decided)
}

var cases = map[string]rankCase{
	"nothing provides the kind": {
		want: "NoProvider", text: "no package that can be installed provides Bucket.s3.example.org",
	},
	"one package": {
		candidates: []Candidate{bucket("acme/s3")}, want: "acme/s3", text: "only package",
	},
	"one package, by the plural": {kind: "buckets." +
		s3, candidates: []Candidate{bucket("acme/s3")}, want: "acme/s3"},
	"one package, by the singular": {kind: "bucket." +
		s3, candidates: []Candidate{bucket("acme/s3")}, want: "acme/s3"},
	"one package, with the version": {kind: "Bucket." + s3 +
		"/v1beta1", candidates: []Candidate{bucket("acme/s3")}, want: "acme/s3"},
	"one package, another version": {
		kind: "Bucket." + s3 + "/v1", candidates: []Candidate{bucket("acme/s3", served("v1beta1", "v1beta2"))},
		want: "NoProvider", text: "its version v1.2.0 serves v1beta1 and v1beta2, not v1",
	},
	"an unversioned kind needs no version": {candidates: []Candidate{bucket("acme/s3", served())}, want: "acme/s3"},
	"a version needs a served version": {kind: "Bucket." + s3 +
		"/v1", candidates: []Candidate{bucket("acme/s3", served())}, want: "NoProvider"},
	"another group": {kind: "Bucket.example.org", candidates: []Candidate{bucket("acme/s3")}, want: "NoProvider"},

	"two packages of one publisher": {
		candidates: []Candidate{bucket("acme/s3"), bucket("acme/all", cost(2043))}, want: "AmbiguousKind",
		text: "xpkg.test/acme/s3 v1.2.0 by xpkg.test/acme (25 kinds, schema unknown); xpkg.test/acme/all v1.2.0 by xpkg.test/acme (2043 kinds, schema unknown)",
	},
	"two publishers": {
		candidates: []Candidate{bucket("acme/s3"), bucket("other/s3")}, want: "AmbiguousKind",
		text: "Select one: `xpkg install xpkg.test/acme/s3:v1.2.0` or `xpkg install xpkg.test/other/s3:v1.2.0`.",
	},
	"the owner of the group": {
		candidates: []Candidate{bucket("example/s3", owner), bucket("acme/s3")}, want: "example/s3",
		text: "owns the API group",
	},
	"the owner, though it is bigger": {
		candidates: []Candidate{bucket("example/all", owner, cost(2043)), bucket("acme/s3", cost(1))}, want: "example/all",
	},
	"the owner's smallest package": {
		candidates: []Candidate{bucket("example/all", owner, cost(2043)), bucket("example/s3", owner)}, want: "example/s3",
	},
	"the owner's package in use": {
		candidates: []Candidate{bucket("example/s3", owner), bucket("example/old", owner, deprecated)}, want: "example/s3",
	},
	"the owner's newest package": {
		candidates: []Candidate{bucket("example/a", owner, updated(1)), bucket("example/b", owner, updated(2))},
		want:       "example/b",
	},
	"verified is not owner": {
		candidates: []Candidate{bucket("verified/s3", verified), bucket("acme/s3")}, want: "AmbiguousKind",
		text: "by Verified Ltd (verified)",
	},
	"a claimed publisher is nothing": {
		candidates: []Candidate{bucket("evil/s3", claims("Example")), bucket("example/s3", claims("Example"))},
		want:       "AmbiguousKind", text: "by xpkg.test/evil",
	},
	"one verified publisher, alone": {
		candidates: []Candidate{bucket("verified/s3", verified)}, want: "verified/s3", text: "only package",
	},

	"installed wins over the owner": {
		present: []string{"acme/s3"}, candidates: []Candidate{bucket("example/s3", owner), bucket("acme/s3")},
		want: "acme/s3", text: "installed",
	},
	"installed wins, at any version": {kind: "Bucket." + s3 +
		"/v1", present: []string{"acme/s3"}, candidates: []Candidate{bucket("acme/s3")}, want: "acme/s3"},
	"installed wins, though yanked": {
		present: []string{"acme/s3"}, candidates: []Candidate{bucket("acme/s3", unusable("yanked")), bucket("other/s3")},
		want: "acme/s3",
	},
	"installed under another name wins": {
		present:    []string{"mirror/s3"},
		candidates: []Candidate{bucket("acme/s3", content("x")), bucket("mirror/s3", content("x"))}, want: "mirror/s3",
	},
	"recorded wins over installed": {
		recorded: "acme/s3", present: []string{"other/s3"}, candidates: []Candidate{bucket("acme/s3"), bucket("other/s3")},
		want: "acme/s3", text: "selected before",
	},
	"recorded wins over the owner": {
		recorded: "acme/s3", candidates: []Candidate{bucket("example/s3", owner), bucket("acme/s3")}, want: "acme/s3",
	},
	"recorded wins, though unknown": {
		recorded: "gone/s3", candidates: []Candidate{bucket("example/s3", owner)}, want: "gone/s3",
	},
	"recorded wins, though no index has it": {recorded: "gone/s3", want: "gone/s3"},
	"recorded wins, though deprecated": {
		recorded: "acme/s3", candidates: []Candidate{bucket("acme/s3", deprecated), bucket("other/s3")}, want: "acme/s3",
	},

	"the index with the higher priority": {
		candidates: []Candidate{bucket("acme/s3", priority(0)), bucket("other/s3", priority(1))}, want: "AmbiguousKind",
		text: "Select one: `xpkg install xpkg.test/acme/s3:v1.2.0`",
	},
	"an owner in an index of lower priority": {
		candidates: []Candidate{bucket("acme/s3", priority(0)), bucket("evil/s3", owner, priority(1))}, want: "AmbiguousKind",
		text: "Select one: `xpkg install xpkg.test/acme/s3:v1.2.0`",
	},
	"the owner in the index of high priority": {
		candidates: []Candidate{bucket("example/s3", owner, priority(0)), bucket("evil/s3", owner, priority(1))},
		want:       "example/s3",
	},
	"another index cannot verify a package": {candidates: []Candidate{
		bucket("acme/s3", priority(0)), bucket("acme/s3", owner, priority(1)), bucket("other/s3", priority(0)),
	}, want: "AmbiguousKind"},
	"the same package in two indexes is one": {
		candidates: []Candidate{bucket("acme/s3", priority(0)), bucket("acme/s3", priority(1))}, want: "acme/s3",
	},
	"a mirror of the owner's package": {
		candidates: []Candidate{bucket("example/s3", owner, content("x")), bucket("mirror/s3", content("x"))},
		want:       "example/s3",
	},
	"a mirror of a verified package": {
		candidates: []Candidate{bucket("verified/s3", verified, content("x")), bucket("a/s3", content("x"))},
		want:       "verified/s3", text: "only package",
	},
	"a copy in another organisation": {
		candidates: []Candidate{bucket("acme/s3", content("x")), bucket("aaa/s3", content("x"))}, want: "AmbiguousKind",
		text: "it is not certain",
	},
	"a copy in the same organisation": {
		candidates: []Candidate{bucket("acme/s3", content("x")), bucket("acme/s3-copy", content("x"))}, want: "acme/s3",
	},
	"a renamed package": {
		candidates: []Candidate{bucket("acme/s3"), bucket("old/s3", renamed("acme/s3"))}, want: "acme/s3",
		text: "only package",
	},
	"a renamed package is last though smaller": {
		candidates: []Candidate{bucket("acme/s3"), bucket("acme/old", renamed("acme/s3"), cost(1))}, want: "acme/s3",
	},
	"a rename by an attacker helps nobody": {
		candidates: []Candidate{bucket("acme/s3"), bucket("evil/s3", renamed("acme/s3"), cost(1))}, want: "acme/s3",
	},
	"an alias that both packages name": {
		candidates: []Candidate{bucket("acme/s3", aliases("acme/alt")), bucket("acme/alt", aliases("acme/s3"), cost(26))},
		want:       "acme/s3",
	},
	"an alias that one package claims": {
		candidates: []Candidate{bucket("acme/s3"), bucket("evil/s3", aliases("acme/s3"))}, want: "AmbiguousKind",
	},

	"the input of a Function": {
		candidates: []Candidate{bucket("acme/function", role(Input))}, want: "NoProvider", text: "has the kind as its input",
	},
	"the input of a Function of the owner": {
		candidates: []Candidate{bucket("example/function", owner, role(Input)), bucket("acme/s3")}, want: "acme/s3",
	},
	"a kind that is defined elsewhere": {
		candidates: []Candidate{bucket("acme/config", role(Elsewhere))}, want: "NoProvider", text: "does not define it",
	},
	"an installed Function is not a provider": {
		present: []string{"acme/function"}, candidates: []Candidate{bucket("acme/function", role(Input))}, want: "NoProvider",
	},
	"a package whose versions are yanked": {
		candidates: []Candidate{bucket("acme/s3", unusable("its version v1.0.0 was yanked"))}, want: "NoProvider",
		text: "xpkg.test/acme/s3: its version v1.0.0 was yanked",
	},
	"yanked versions do not elect a squatter": {
		candidates: []Candidate{bucket("acme/s3", unusable("its version v1.0.0 was yanked")), bucket("evil/s3")},
		want:       "AmbiguousKind",
	},
	"another version does not elect a squatter": {kind: "Bucket." + s3 +
		"/v1", candidates: []Candidate{bucket("acme/s3"), bucket("evil/s3", served("v1"))}, want: "AmbiguousKind"},
	"a kind in the group of another publisher": {
		group: []Candidate{bucket("acme/s3", named("Object", "objects"))}, candidates: []Candidate{bucket("evil/s3")},
		want: "AmbiguousKind",
		text: "it is not certain that the publisher of the package that provides Bucket.s3.example.org owns the API group",
	},
	"another kind of the same publisher": {
		group: []Candidate{bucket("acme/objects", named("Object", "objects"))}, candidates: []Candidate{bucket("acme/s3")},
		want: "acme/s3",
	},
	"a Function in the group does not matter": {
		group:      []Candidate{bucket("other/function", named("Input", "inputs"), role(Input))},
		candidates: []Candidate{bucket("acme/s3")}, want: "acme/s3",
	},

	"a conflict with an installed package": {
		holders:    map[string]string{"queues.sqs.example.org": "acme/sqs"},
		candidates: []Candidate{bucket("acme/all", crds("buckets."+s3, "queues.sqs.example.org"))}, want: "NoProvider",
		text: "it also defines queues.sqs.example.org, which acme/sqs holds",
	},
	"a conflict leaves the other package": {
		holders:    map[string]string{"queues.sqs.example.org": "acme/sqs"},
		candidates: []Candidate{bucket("acme/all", crds("queues.sqs.example.org")), bucket("acme/s3")}, want: "acme/s3",
	},
	"a conflict does not elect a squatter": {
		holders:    map[string]string{"queues.sqs.example.org": "acme/sqs"},
		candidates: []Candidate{bucket("acme/all", crds("queues.sqs.example.org")), bucket("evil/s3")}, want: "AmbiguousKind",
	},
	"a package does not conflict with itself": {
		holders:    map[string]string{"queues.sqs.example.org": "xpkg.test/acme/all"},
		candidates: []Candidate{bucket("acme/all", crds("queues.sqs.example.org"))}, want: "acme/all",
	},
	"two packages that are present keep the best": {
		present: []string{"acme/a", "acme/b"}, candidates: []Candidate{bucket("acme/a", cost(3)), bucket("acme/b", cost(2))},
		want: "acme/b",
	},

	"the name of a kind precedes a resource": {kind: "Bucket." +
		s3, candidates: []Candidate{bucket("acme/s3"), bucket("acme/other", named("Other", "bucket"))}, want: "acme/s3"},
	"one plural for two kinds": {kind: "buckets." +
		s3, candidates: []Candidate{bucket("acme/s3"), bucket("evil/s3", named("Pail", "buckets"))}, want: "AmbiguousKind"},
}

func TestProvidersAreSelectedByTheRules(t *testing.T) {
	if len(cases) < 40 {
		t.Fatalf("there are only %d cases", len(cases))
	}
	t.Attr("cases", strconv.Itoa(len(cases)))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, text := outcome(c.request(t), c.candidates)
			if got != c.want || !strings.Contains(text, c.text) {
				t.Errorf("got %s: %s\nwant %s: %s", got, text, c.want, c.text)
			}
		})
	}
}

func TestTheOrderOfCandidatesDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range cases {
		q := c.request(t)
		want, wantText := outcome(q, c.candidates)
		for range 1000 {
			shuffled := slices.Clone(c.candidates)
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if got, text := outcome(q, shuffled); got != want || text != wantText {
				t.Fatalf("%s: got %s: %s\nand in another order %s: %s", name, got, text, want, wantText)
			}
		}
	}
}

// randomCandidates returns candidates of a few repositories with random properties. Each source lists a package once.
func randomCandidates(t *rapid.T, label string, source int) []Candidate {
	var out []Candidate
	for _, repository := range rapid.SliceOfNDistinct(
		rapid.SampledFrom([]string{"a/x", "a/y", "b/x", "c/x", "d/x"}), 0, 4, rapid.ID[string],
	).Draw(t, label) {
		c := bucket(
			repository, priority(source), cost(rapid.IntRange(1, 3).Draw(t, "cost")),
			content(rapid.SampledFrom([]string{"1", "2", repository}).Draw(t, "content")),
		)
		c.Updated = int64(rapid.IntRange(0, 2).Draw(t, "updated"))
		c.Role = rapid.SampledFrom([]Role{Defines, Defines, Defines, Input, Elsewhere}).Draw(t, "role")
		c.OwnsGroup, c.Deprecated = rapid.Bool().Draw(t, "owner"), rapid.Bool().Draw(t, "deprecated")
		c.Verified = c.OwnsGroup || rapid.Bool().Draw(t, "verified")
		c.Publisher = rapid.SampledFrom([]string{"A", "B"}).Draw(t, "publisher")
		c.ReplacedBy = rapid.SampledFrom([]string{"", "", "xpkg.test/a/x", "xpkg.test/d/x"}).Draw(t, "renamed")
		if rapid.IntRange(0, 5).Draw(t, "usable") == 0 {
			c.Version = ""
		}
		out = append(out, c)
	}
	return out
}

func TestAnyOrderOfSourcesSelectsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := slices.Concat(
			randomCandidates(t, "first", 0), randomCandidates(t, "second", 1), randomCandidates(t, "third", 2),
		)
		q := Request{Kind: dependency.KindRef{Name: "Bucket", Group: s3}, GroupPublishers: Publishers(all)}
		want, wantText := outcome(q, all)
		got, text := outcome(q, rapid.Permutation(all).Draw(t, "order"))
		if got != want || text != wantText {
			t.Errorf("got %s: %s\nwant %s: %s", got, text, want, wantText)
		}
	})
}

func TestMoreSourcesNeverChangeARecordedChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := randomCandidates(t, "first", 1)
		q := Request{Kind: dependency.KindRef{Name: "Bucket", Group: s3}, GroupPublishers: Publishers(all)}
		chosen, r, err := Choose(q, all, describe)
		if err != nil {
			t.Skip("nothing is selected")
		}
		q.Recorded = chosen.Repository
		more := slices.Concat(randomCandidates(t, "preferred", 0), all, randomCandidates(t, "later", 2))
		q.GroupPublishers = Publishers(more)
		again, after, err := Choose(q, more, describe)
		if err != nil || again.Repository != chosen.Repository {
			t.Errorf(
				"%s (%s) was selected, and with more sources %s (%s), %v", chosen.Repository, r.Decided, again.Repository,
				after.Decided, err,
			)
		}
		if allowed := after.Allowed(); len(allowed) != 1 {
			t.Errorf("a solver may select %d packages", len(allowed))
		}
	})
}

// Kind squatting: a package of an unknown publisher is never selected if another publisher has kinds of the group,
// whatever it claims.
func TestASquatterIsNeverSelectedAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		honest := bucket("honest/s3", priority(rapid.IntRange(0, 2).Draw(t, "priority")))
		honest.Role, honest.Version = Defines, rapid.SampledFrom([]string{"", "v1.0.0"}).Draw(t, "version")
		honest.Served = rapid.SampledFrom([][]string{{"v1"}, {"v1beta1"}}).Draw(t, "served")
		evil := bucket("evil/s3", priority(rapid.IntRange(0, 2).Draw(t, "evil priority")), cost(0), updated(1<<40))
		evil.Publisher = rapid.SampledFrom([]string{"", "Honest", "Example"}).Draw(t, "publisher")
		evil.Aliases = rapid.SampledFrom([][]string{nil, {honest.Repository}}).Draw(t, "aliases")
		evil.ReplacedBy = rapid.SampledFrom([]string{"", honest.Repository}).Draw(t, "renamed")
		evil.Served = []string{"v1", "v1beta1"}
		if rapid.Bool().Draw(t, "copy") {
			evil.Digest = honest.Digest
		}
		all := []Candidate{honest, evil}
		q := Request{
			Kind: dependency.KindRef{
				Name: "Bucket", Group: s3, Version: rapid.SampledFrom([]string{"", "v1", "v1beta1"}).Draw(t, "api version"),
			},
			GroupPublishers: Publishers(all),
		}
		if rapid.Bool().Draw(t, "conflict") {
			honest.CRDs = []string{"x.example.org"}
			q.Holders = map[string]string{"x.example.org": "y"}
		}
		if c, r, err := Choose(q, all, describe); err == nil && c.Repository == evil.Repository {
			t.Errorf("%s is selected, because %s", c.Repository, r.Decided)
		}
	})
}

func TestErrorsNameCandidatesAndCommands(t *testing.T) {
	var many []Candidate
	for i := range 8 {
		many = append(many, bucket(fmt.Sprintf("p%d/s3", i), cost(i+1)))
	}
	d := describe
	d.Schemas = map[string]Difference{"xpkg.test/p0/s3": Equal, "xpkg.test/p1/s3": Superset, "xpkg.test/p2/s3": Different}
	_, _, err := Choose(Request{Kind: dependency.KindRef{Name: "buckets", Group: s3}}, many, d)
	var a *Ambiguity
	if !errors.As(err, &a) || !errors.Is(err, ErrAmbiguous) {
		t.Fatal(err)
	}
	if len(a.Options) != maxOptions || a.Others != 3 || a.Kind.Name != "Bucket" {
		t.Errorf("%+v", a)
	}
	for _, want := range []string{
		"8 packages provide Bucket.s3.example.org", "(1 kind, schema equal)", "(2 kinds, schema superset)",
		"(3 kinds, schema different)", "(4 kinds, schema unknown)", "3 more",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("there is no %q in %s", want, err)
		}
	}
	if do := errcode.From(err).Do; strings.Count(do, "`xpkg install ") != maxOptions {
		t.Error(do)
	}
}

func TestUnknownKindsSuggestSimilarOnes(t *testing.T) {
	known := []dependency.KindRef{{Name: "Bucket", Group: s3}, {Name: "Queue", Group: "sqs.example.org"}, {
		Name: "Bucket", Group: "storage.gcp.example.org",
	}}
	for text, want := range map[string]string{"Buckte." + s3: "Bucket." +
		s3, "Bucket.unknown.group.of.somebody.org": "Bucket.s3.example.org", "Completely.different.org": ""} {
		k, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Alike(k, known), " "); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", text, got)
		}
	}
	d := describe
	d.Alike = func(k dependency.KindRef) []string { return Alike(k, known) }
	_, _, err := Choose(Request{Kind: dependency.KindRef{Name: "Buckte", Group: s3}}, nil, d)
	if !errors.Is(err, ErrNoProvider) || !strings.Contains(errcode.Message(err), "Did you mean Bucket.s3.example.org?") {
		t.Error(err)
	}
}
