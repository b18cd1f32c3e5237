package provide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// contentOf returns a package of a kind with one definition, whose served version v1 has a schema.
func contentOf(t *testing.T, kind, definition, schema string) *xpkg.Package {
	t.Helper()
	pkg, err := xpkg.Read(fmt.Appendf(nil, `apiVersion: meta.pkg.crossplane.io/v1
kind: %s
metadata: {name: x}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.s3.example.org}
spec:
  group: s3.example.org
  scope: Cluster
  names: {kind: %s, plural: buckets, singular: bucket, listKind: BucketList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: %s}}
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`, kind, definition, schema), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func TestContentsAreSources(t *testing.T) {
	provider, function := contentOf(t, "Provider", "Bucket", "{type: object}"),
		contentOf(t, "Function", "Bucket", "{type: object}")
	s := Packages{Name: "cache", All: []Package{
		{Repository: "xpkg.test/acme/s3", Version: "v1.0.0", Digest: oci.DigestOf([]byte("1")), Content: provider},
		{Repository: "xpkg.test/acme/function", Digest: oci.DigestOf([]byte("2")), Content: function},
	}}
	for text, want := range map[string]string{
		"Bucket.s3.example.org": "xpkg.test/acme/s3:v1.0.0", "buckets.s3.example.org/v1": "xpkg.test/acme/s3:v1.0.0",
		"Bucket.s3.example.org/v1alpha1": "", "Bucket.example.org": "", "Queue.s3.example.org": "",
	} {
		r := Rank(
			Request{Kind: kindRef(t, text), GroupPublishers: Publishers(s.Group("s3.example.org"))},
			s.Candidates(kindRef(t, text)),
		)
		got := ""
		if r.Decided != "" {
			got = r.Order[0].Ref()
		}
		if got != want {
			t.Errorf("%s: %s, %+v", text, got, r)
		}
		if DefinesKind(provider, kindRef(t, text)) != (want != "") || DefinesKind(function, kindRef(t, text)) {
			t.Errorf(
				"%s is defined: %v, by the Function: %v", text, DefinesKind(provider, kindRef(t, text)),
				DefinesKind(function, kindRef(t, text)),
			)
		}
	}
	if got := s.Candidates(kindRef(t, "Bucket.s3.example.org")); len(got) != 2 ||
		!slices.Equal(got[0].Served, []string{"v1"}) || got[1].Role != Input || got[0].Cost != 1 {
		t.Errorf("%+v", got)
	}
	if got := s.Kinds(); len(got) != 1 || got[0].String() != "buckets.s3.example.org" {
		t.Errorf("%v", got)
	}
}

func TestSchemasAreCompared(t *testing.T) {
	first := contentOf(
		t, "Provider", "Bucket",
		`{type: object, required: [a], properties: {a: {type: string, description: one}, b: {type: string, enum: [x, y]}}}`,
	)
	for schema, want := range map[string]Difference{
		`{type: object, required: [a], properties: {a: {type: string, description: two}, b: {type: string, enum: [y, x]}}}`:                        Equal,
		`{type: object, required: [a], properties: {a: {type: string}, b: {type: string, enum: [x, y, z]}, c: {type: string}}}`:                    Superset,
		`{type: object, required: [a, c], properties: {a: {type: string}, b: {type: string, enum: [x, y]}, c: {type: string}}}`:                    Different,
		`{type: object, required: [a], properties: {a: {type: integer}, b: {type: string, enum: [x, y]}}}`:                                         Different,
		`{type: object, required: [a], properties: {a: {type: string}}}`:                                                                           Different,
		`{type: object, properties: {a: {type: string}, b: {type: string, enum: [x, y]}}}`:                                                         Different,
		`{type: object, required: [a], properties: {a: {type: string}, b: {type: string, enum: [x, y]}}, x-kubernetes-validations: [{rule: "a"}]}`: Different,
	} {
		if got := CompareSchemas(
			first, contentOf(t, "Provider", "Bucket", schema), kindRef(t, "Bucket.s3.example.org"),
		); got != want {
			t.Errorf("%s is %s, want %s", schema, got, want)
		}
	}
	if got := CompareSchemas(
		first, contentOf(t, "Provider", "Other", "{type: object}"), kindRef(t, "Bucket.s3.example.org"),
	); got == Equal {
		t.Errorf("another kind is %s", got)
	}
}

// Of several versions in a package cache, the newest one that serves the required version is the candidate.
func TestTheNewestVersionInACacheIsTheCandidate(t *testing.T) {
	content := contentOf(t, "Provider", "Bucket", "{type: object}")
	other := contentOf(t, "Provider", "Bucket", "{type: object}")
	other.Objects = nil
	var all []Package
	for i, v := range []string{"v1.9.0", "v1.10.0", "v2.0.0-rc.1", "main", ""} {
		all = append(all, Package{
			Repository: "xpkg.test/acme/s3", Version: v, Digest: oci.DigestOf([]byte{byte(i)}), Content: content,
		})
	}
	all = append(all, Package{Repository: "xpkg.test/acme/s3", Version: "v3.0.0", Content: other})
	for range 2 {
		if got := (Packages{All: all}).Candidates(kindRef(t, "Bucket.s3.example.org/v1")); len(got) != 1 ||
			got[0].Version != "v1.10.0" {
			t.Errorf("the candidates are %+v", got)
		}
		slices.Reverse(all)
	}
}

// Content that was only downloaded is offered if nothing else provides a kind, never selected alone, and changes no
// selection among the packages that an index or a user has named.
func TestDownloadedContentIsOfferedAndNotSelected(t *testing.T) {
	content := contentOf(t, "Provider", "Bucket", "{type: object}")
	downloaded := Package{
		Repository: "xpkg.test/evil/s3", Version: "v9.0.0", Digest: oci.DigestOf([]byte("9")), Content: content,
		Downloaded: true,
	}
	added := Package{
		Repository: "xpkg.test/acme/s3", Version: "v1.0.0", Digest: oci.DigestOf([]byte("1")), Content: content,
	}
	kind := kindRef(t, "Bucket.s3.example.org")
	rank := func(q Request, all ...Package) (Ranking, *Finder) {
		f := &Finder{Sources: []Source{Packages{All: all, Name: "cache"}}}
		q.Kind = kind
		r, err := f.Rank(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return r, f
	}
	r, f := rank(Request{}, downloaded)
	if len(r.Order) != 1 || r.Decided != "" {
		t.Errorf("downloaded content: %+v", r)
	}
	if err := f.Err(t.Context(), r); !errors.Is(err, ErrAmbiguous) ||
		!strings.Contains(errcode.From(err).Do, "xpkg install provider xpkg.test/evil/s3:v9.0.0") {
		t.Errorf("the error is %v", err)
	}
	if r, _ := rank(Request{}, downloaded, added); len(r.Order) != 1 || r.Order[0].Repository != added.Repository ||
		r.Decided != OnlyProvider {
		t.Errorf("beside a package that was added: %+v", r)
	}
	if r, _ := rank(Request{Present: map[string]bool{downloaded.Repository: true}}, downloaded); r.Decided != Present {
		t.Errorf("an installed package: %+v", r)
	}
	if r, _ := rank(Request{Recorded: downloaded.Repository}, downloaded, added); r.Decided != Recorded ||
		r.Order[0].Repository != downloaded.Repository {
		t.Errorf("a package that was selected before: %+v", r)
	}
	if kinds, err := (&Finder{Sources: []Source{Packages{All: []Package{downloaded}}}}).
		Expand(t.Context(), kindRef(t, "*.s3.example.org/v1"), nil); err != nil || len(kinds) != 1 {
		t.Errorf("the kinds of the group are %v, %v", kinds, err)
	}
}

// The packages of a cluster that hold CRDs of the group, and CRDs that no package holds, count among the publishers of
// the group.
func TestKindsOfTheClusterCountAsKindsOfTheGroup(t *testing.T) {
	provider := contentOf(t, "Provider", "Bucket", "{type: object}")
	source := Packages{Name: "index", All: []Package{{
		Repository: "xpkg.test/acme/s3", Version: "v1.0.0", Digest: oci.DigestOf([]byte("1")), Content: provider,
	}}}
	for name, tt := range map[string]struct {
		held    map[string]string
		decided bool
	}{
		"none":                  {nil, true},
		"of the same publisher": {map[string]string{"queues.s3.example.org": "xpkg.test/acme/sqs"}, true},
		"of another publisher":  {map[string]string{"queues.s3.example.org": "xpkg.test/other/sqs"}, false},
		"of another registry":   {map[string]string{"queues.s3.example.org": "mirror.test/acme/sqs"}, false},
		"of no package":         {map[string]string{"queues.s3.example.org": ""}, false},
		"of no package, and of a peer": {
			map[string]string{"a.s3.example.org": "", "queues.s3.example.org": "xpkg.test/acme/sqs"}, false,
		},
	} {
		f := Finder{Sources: []Source{source}, Held: func(_ context.Context, group string) (map[string]string, error) {
			if group != "s3.example.org" {
				t.Errorf("%s: the group %s is asked for", name, group)
			}
			return tt.held, nil
		}}
		r, err := f.Rank(t.Context(), Request{Kind: kindRef(t, "Bucket.s3.example.org")})
		if err != nil || (r.Decided != "") != tt.decided {
			t.Errorf("%s: decided %q (%v)", name, r.Decided, err)
		}
	}
	failing := Finder{
		Sources: []Source{source},
		Held:    func(context.Context, string) (map[string]string, error) { return nil, errors.New("broken") },
	}
	if _, err := failing.Rank(t.Context(), Request{Kind: kindRef(t, "Bucket.s3.example.org")}); err == nil {
		t.Error("kinds of a cluster that cannot be read do not count")
	}
}
