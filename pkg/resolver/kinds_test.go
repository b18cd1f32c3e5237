package resolver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

var (
	errNone = errcode.Code{Name: "TestNoProvider", Class: errcode.NotFound, Cause: "A test.", Fix: "None."}
	errMany = errcode.Code{Name: "TestAmbiguous", Class: errcode.Conflict, Cause: "A test.", Fix: "None."}
)

// kinds maps kinds to their providers: repositories with a constraint. A question mark in front of a kind makes it
// ambiguous unless a provider is present or recorded.
type kinds map[string][]resolver.Provider

func (k kinds) Providers(_ context.Context, q resolver.KindQuery) (resolver.Providers, error) {
	all, decided := k[q.Kind.String()], true
	if len(all) == 0 {
		all, decided = k["?"+q.Kind.String()], false
	}
	if len(all) == 0 {
		return resolver.Providers{}, errNone.New(nil, "%s has no provider", q.Kind)
	}
	for _, p := range all {
		if q.Recorded[q.Kind] == p.Repository || q.Present[p.Repository] {
			return resolver.Providers{Candidates: []resolver.Provider{p}}, nil
		}
	}
	out := resolver.Providers{Candidates: all}
	if !decided {
		out.Undecided = errMany.New(nil, "%s has several providers", q.Kind)
	}
	return out, nil
}

func (k kinds) Expand(
	_ context.Context, ref dependency.KindRef, _ map[dependency.KindRef]string,
) ([]dependency.KindRef, error) {
	var out []dependency.KindRef
	for text := range k {
		one, err := dependency.ParseKindRef(strings.TrimPrefix(text, "?"))
		if err == nil && one.Group == ref.Group && one.Version == ref.Version {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b dependency.KindRef) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

// provider returns a provider of this registry.
func (r *registry) provider(name, constraint string) resolver.Provider {
	return resolver.Provider{Repository: r.address + "/" + name, Constraint: constraint}
}

// kindsRegistry returns a registry with packages that provide kinds, and packages that require them.
func kindsRegistry(t *testing.T) *registry {
	r := newRegistry(t, 0)
	r.have(t, `
		a/storage v1.0.0:
		a/storage v1.1.0:
		a/storage v2.0.0:
		b/storage v1.0.0:
		b/storage v3.0.0:
		a/queue v1.0.0:
		a/app v1.0.0: crd=Bucket.s3.example.org
		a/other v1.0.0: crd=Bucket.s3.example.org; crd=Bucket.s3.example.org/v1
		a/all v1.0.0: crd=*.s3.example.org
		a/none v1.0.0: crd=Nothing.s3.example.org
		a/bound v1.0.0: a/storage <v2; crd=Bucket.s3.example.org
		a/names v1.0.0: b/storage v1.0.0
		a/choosy v1.0.0: crd=Nothing.s3.example.org
		a/choosy v0.9.0: a/queue v1.0.0
	`)
	return r
}

func (r *registry) kindResolver(t *testing.T, known kinds) *resolver.Resolver {
	out := newResolver(t, nil)
	out.Kinds = known
	return out
}

func TestAKindIsResolvedToItsProvider(t *testing.T) {
	r := kindsRegistry(t)
	bucket, versioned := "Bucket.s3.example.org", "Bucket.s3.example.org/v1"
	for name, c := range map[string]struct {
		known kinds
		roots []dependency.Root
		want  string
	}{
		"of a package": {
			kinds{bucket: {r.provider("a/storage", ">=v1.1.0, <v2")}}, []dependency.Root{r.root("a/app", "v1.0.0")},
			"a/app v1.0.0; a/storage v1.1.0",
		},
		"of a user": {
			kinds{bucket: {r.provider("a/storage", "")}}, []dependency.Root{{CRD: bucket}}, "a/storage v2.0.0",
		},
		"the best one": {
			kinds{bucket: {r.provider("b/storage", ""), r.provider("a/storage", "")}},
			[]dependency.Root{r.root("a/app", "v1.0.0")}, "a/app v1.0.0; b/storage v3.0.0",
		},
		"an alternative": {
			kinds{bucket: {r.provider("b/storage", ">=v9"), r.provider("a/storage", "")}},
			[]dependency.Root{r.root("a/app", "v1.0.0")}, "a/app v1.0.0; a/storage v2.0.0",
		},
		"an older version first": {
			kinds{bucket: {r.provider("a/storage", ""), r.provider("b/storage", "")}},
			[]dependency.Root{r.root("a/bound", "v1.0.0")}, "a/bound v1.0.0; a/storage v1.1.0",
		},
		"a package by its name": {
			kinds{bucket: {r.provider("a/storage", ""), r.provider("b/storage", "")}},
			[]dependency.Root{r.root("a/app", "v1.0.0"), r.root("a/names", "v1.0.0")},
			"a/app v1.0.0; a/names v1.0.0; b/storage v1.0.0",
		},
		"ambiguous, but by its name": {
			kinds{"?" + bucket: {r.provider("a/storage", ""), r.provider("b/storage", "")}},
			[]dependency.Root{r.root("a/app", "v1.0.0"), r.root("a/names", "v1.0.0")},
			"a/app v1.0.0; a/names v1.0.0; b/storage v1.0.0",
		},
		"one for two versions of the API": {
			kinds{bucket: {r.provider("a/storage", ""), r.provider("b/storage", "")}, versioned: {
				r.provider("b/storage", ""), r.provider("a/storage", ""),
			}},
			[]dependency.Root{r.root("a/other", "v1.0.0")}, "a/other v1.0.0; a/storage v2.0.0",
		},
		"every kind of a group": {
			kinds{bucket: {r.provider("a/storage", "")}, "Queue.s3.example.org": {r.provider("a/queue", "")}},
			[]dependency.Root{r.root("a/all", "v1.0.0")}, "a/all v1.0.0; a/queue v1.0.0; a/storage v2.0.0",
		},
		"an older dependent without the kind": {
			kinds{}, []dependency.Root{r.root("a/choosy", "")}, "a/choosy v0.9.0; a/queue v1.0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.kindResolver(t, c.known).Resolve(t.Context(), resolver.Request{Roots: c.roots})
			if err != nil || r.summary(got.File) != c.want {
				t.Fatalf("%s, %v", r.summary(got.File), err)
			}
			text := lockfile.Encode(got.File)
			if strings.Contains(string(text), "kind Bucket") {
				t.Errorf("the lock file has a virtual package:\n%s", text)
			}
			if _, err := lockfile.Parse(text); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			if problems := got.Problems(); problems != nil {
				t.Errorf("%q", problems)
			}
		})
	}
}

func TestTheLockFileRecordsTheProvider(t *testing.T) {
	r := kindsRegistry(t)
	kind := dependency.KindRef{Name: "Bucket", Group: "s3.example.org"}
	first, err := r.kindResolver(t, kinds{kind.String(): {r.provider("a/storage", ">=v1.0.0")}}).
		Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("a/app", "v1.0.0"), {CRD: kind.String()}}})
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := first.Provider(kind); !ok || p.Repository != r.address+"/a/storage" {
		t.Fatalf("the provider is %+v", p)
	}
	if root := first.Roots[slices.IndexFunc(
		first.Roots, func(r dependency.Root) bool { return r.CRD != "" },
	)]; root.Package != r.address+"/a/storage" || root.Constraint != ">=v1.0.0" {
		t.Errorf("the root is %+v", root)
	}
	// An index that prefers another package, or that does not know the kind, changes nothing.
	for name, known := range map[string]kinds{
		"another index":   {kind.String(): {r.provider("b/storage", ""), r.provider("a/storage", "")}},
		"ambiguous":       {"?" + kind.String(): {r.provider("b/storage", ""), r.provider("a/storage", "")}},
		"without indexes": nil,
	} {
		t.Run(name, func(t *testing.T) {
			again, err := r.kindResolver(t, known).
				Resolve(t.Context(), resolver.Request{Roots: first.Roots, Locked: first.Packages})
			if err != nil || string(lockfile.Encode(again.File)) != string(lockfile.Encode(first.File)) {
				t.Errorf("%v\n%s", err, lockfile.Encode(again.File))
			}
			if known == nil {
				return
			}
			// Also when every version is upgraded, and the user names the kind again.
			provides := first.ProvidersOfKinds()
			again, err = r.kindResolver(t, known).Resolve(t.Context(), resolver.Request{
				Roots: []dependency.Root{r.root("a/app", ""), {CRD: kind.String()}}, Provides: provides,
			})
			if p, _ := again.Provider(kind); err != nil || p.Repository != r.address+"/a/storage" {
				t.Errorf("%+v, %v", p, err)
			}
			if d := again.ProvidersOfKinds()[kind]; d != provides[kind] {
				t.Errorf("the dependency was %+v, and is %+v", provides[kind], d)
			}
		})
	}
}

func TestUnresolvedKindsAreExplained(t *testing.T) {
	r := kindsRegistry(t)
	bucket := "Bucket.s3.example.org"
	for name, c := range map[string]struct {
		known kinds
		roots []dependency.Root
		code  errcode.Code
		want  []string
	}{
		"no provider for a user": {kinds{}, []dependency.Root{{CRD: bucket}}, errNone, []string{
			bucket + " has no provider",
		}},
		"no provider for a package": {kinds{}, []dependency.Root{r.root("a/none", "v1.0.0")}, solver.ErrUnsolvable, []string{
			"a/none v1.0.0, which requires kind Nothing.s3.example.org, which no known package provides",
		}},
		"several providers": {
			kinds{"?" + bucket: {r.provider("a/storage", ""), r.provider("b/storage", "")}},
			[]dependency.Root{r.root("a/app", "v1.0.0")}, errMany, []string{"has several providers"},
		},
		"no version of the provider": {
			kinds{bucket: {r.provider("a/storage", ">=v9")}}, []dependency.Root{r.root("a/app", "v1.0.0")}, solver.ErrUnsolvable,
			[]string{"which requires kind Bucket.s3.example.org, which requires " + r.address +
				"/a/storage >=v9, which does not exist (versions: v1.0.0 to v2.0.0)"},
		},
		"versions that contradict": {
			kinds{bucket: {r.provider("a/storage", ">=v2")}}, []dependency.Root{r.root("a/bound", "v1.0.0")},
			solver.ErrUnsolvable,
			[]string{"kind Bucket.s3.example.org", "a/storage >=v2", "a/storage <v2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.kindResolver(t, c.known).Resolve(t.Context(), resolver.Request{Roots: c.roots})
			if !errors.Is(err, c.code) {
				t.Fatal(err)
			}
			text := errcode.Message(err)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("there is no %q in %s", want, text)
				}
			}
			if strings.Contains(text, "kind Bucket.s3.example.org 1.0.0") || strings.Contains(text, "push or mirror kind") ||
				strings.Contains(text, "author of kind") {
				t.Error(text)
			}
		})
	}
}

func TestKindsAreIgnoredWithoutSources(t *testing.T) {
	r := kindsRegistry(t)
	got, err := newResolver(t, nil).
		Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("a/app", "v1.0.0")}})
	if err != nil || r.summary(got.File) != "a/app v1.0.0" {
		t.Errorf("%s, %v", r.summary(got.File), err)
	}
}

// countedKinds counts the calls.
type countedKinds struct {
	kinds
	calls atomic.Int32
}

func (c *countedKinds) Providers(ctx context.Context, q resolver.KindQuery) (resolver.Providers, error) {
	c.calls.Add(1)
	return c.kinds.Providers(ctx, q)
}

func TestPackagesWithoutKindsAskNoSource(t *testing.T) {
	r := kindsRegistry(t)
	known := &countedKinds{kinds: kinds{}}
	kindless := newResolver(t, nil)
	kindless.Kinds = known
	if _, err := kindless.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{
		r.root("a/names", "v1.0.0"),
	}}); err != nil || known.calls.Load() != 0 {
		t.Errorf("%d calls, %v", known.calls.Load(), err)
	}
}

// reefKinds know a package a/storage with the kinds Bucket and Queue, and a preferred one, b/storage, with Bucket only.
// Both define the CRD of Bucket, so that one of them can be installed. Trap has a package that conflicts, too.
type reefKinds struct{ *registry }

func (k reefKinds) Providers(_ context.Context, q resolver.KindQuery) (resolver.Providers, error) {
	both := slices.ContainsFunc(q.Together, func(k dependency.KindRef) bool { return k.Name == "Queue" })
	large, small := k.provider("a/storage", ""), k.provider("b/storage", "")
	switch {
	case q.Kind.Name == "Trap":
		return resolver.Providers{Conflicting: true}, errNone.New(nil, "Trap has no provider")
	case q.Present[small.Repository] && q.Kind.Name == "Queue" && both:
		return resolver.Providers{Conflicting: true}, errNone.New(nil, "Queue conflicts with Bucket")
	case q.Present[small.Repository]:
		return resolver.Providers{Candidates: []resolver.Provider{small}}, nil
	case q.Kind.Name == "Queue" || both:
		return resolver.Providers{Candidates: []resolver.Provider{large}, Others: []string{small.Repository}}, nil
	}
	return resolver.Providers{Candidates: []resolver.Provider{small, large}}, nil
}

func (k reefKinds) Expand(
	context.Context, dependency.KindRef, map[dependency.KindRef]string,
) (out []dependency.KindRef, err error) {
	for _, name := range []string{"Bucket", "Queue", "Trap"} {
		out = append(out, dependency.KindRef{Name: name, Group: "s3.example.org"})
	}
	return out, nil
}

func TestKindsOfATreeAreSelectedTogether(t *testing.T) {
	r := kindsRegistry(t)
	r.have(t, `
		a/queued v1.0.0: crd=Queue.s3.example.org
	`)
	bucket, queue := dependency.Root{CRD: "Bucket.s3.example.org"}, dependency.Root{CRD: "Queue.s3.example.org"}
	for name, c := range map[string]struct {
		roots []dependency.Root
		want  string
	}{
		"one kind":            {[]dependency.Root{bucket}, "b/storage v3.0.0"},
		"two kinds of a user": {[]dependency.Root{bucket, queue}, "a/storage v2.0.0"},
		"the kinds of two packages": {
			[]dependency.Root{r.root("a/app", "v1.0.0"), r.root("a/queued", "v1.0.0")},
			"a/app v1.0.0; a/queued v1.0.0; a/storage v2.0.0",
		},
		"all kinds of a group": {[]dependency.Root{r.root("a/all", "v1.0.0")}, "a/all v1.0.0; a/storage v2.0.0"},
		"all kinds, and one of them": {
			[]dependency.Root{r.root("a/all", "v1.0.0"), r.root("a/app", "v1.0.0")},
			"a/all v1.0.0; a/app v1.0.0; a/storage v2.0.0",
		},
		"all kinds, and one by a name": {
			[]dependency.Root{r.root("a/all", "v1.0.0"), r.root("a/names", "v1.0.0")},
			"a/all v1.0.0; a/names v1.0.0; b/storage v1.0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			resolve := newResolver(t, nil)
			resolve.Kinds = reefKinds{r}
			got, err := resolve.Resolve(t.Context(), resolver.Request{Roots: c.roots})
			if err != nil || r.summary(got.File) != c.want {
				t.Errorf("%s, %v, want %s", r.summary(got.File), err, c.want)
			}
		})
	}
}
