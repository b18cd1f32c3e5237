package resolver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// mirrored returns a resolver that asks the mirrors of a registry first.
func mirrored(t *testing.T, r *registry, mirrors ...*registry) *resolver.Resolver {
	t.Helper()
	return newResolverAt(t, nil, func(_ context.Context, ref oci.Reference) (fetch.Origin, error) {
		o := fetch.Origin{Ref: ref}
		for _, m := range mirrors {
			place := ref
			place.Registry = m.address
			o.Endpoints = append(o.Endpoints, fetch.Endpoint{Ref: place})
		}
		o.Endpoints = append(o.Endpoints, fetch.Endpoint{Ref: ref})
		return o, nil
	})
}

// lists counts the requests for lists of tags since the last call.
func lists(r *registry) int { return count(r.recorded(), "/tags/list") }

// The versions come only from the first location that has any, and the result names
// it.
func TestMirrorListsVersions(t *testing.T) {
	home, mirror := newRegistry(t, 0), newRegistry(t, 0)
	home.have(t, "base v1.0.0\nbase v1.1.0")
	mirror.have(t, "base v0.9.0\nbase v1.0.0")
	res := mirrored(t, home, mirror)
	q := resolver.Request{Roots: []dependency.Root{home.root("base", ">=v0")}}
	got, err := res.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if s, from := home.summary(got.File), got.ListedBy[home.address+"/base"]; s != "base v1.0.0" ||
		from != mirror.address+"/base" || len(got.Notes) != 0 || lists(home) != 0 {
		t.Errorf("%s, listed by %q; %q", s, from, got.Notes)
	}

	for name, fault := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"empty": func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/tags/list") {
				_, err := w.Write([]byte(`{"name": "base", "tags": []}`))
				return err == nil
			}
			return false
		},
		"missing": func(w http.ResponseWriter, r *http.Request) bool {
			http.NotFound(w, r)
			return true
		},
	} {
		mirror.does(fault)
		got, err := res.Resolve(t.Context(), q)
		if err != nil || home.summary(got.File) != "base v1.1.0" || len(got.ListedBy) != 0 {
			t.Errorf("%s: %s, listed by %v; %v", name, home.summary(got.File), got.ListedBy, err)
		}
	}
}

// An outdated mirror hides no solution, and is reported.
func TestMirrorIsBehind(t *testing.T) {
	home, first, second := newRegistry(t, 0), newRegistry(t, 0), newRegistry(t, 0)
	top := "top v1.0.0: base >=v1.1"
	home.have(t, top+"\nbase v1.0.0\nbase v1.1.0\nbase v1.2.0\nbase v1.10.0\nbase v1.3.0")
	for _, mirror := range []*registry{first, second} {
		mirror.have(t, "base v1.0.0")
	}
	q := resolver.Request{Roots: []dependency.Root{home.root("top", "*")}}
	got, err := mirrored(t, home, first, second).Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if s := home.summary(got.File); s != "base v1.10.0; top v1.0.0" {
		t.Error(s)
	}
	want := "the mirror " + second.address + "/base is outdated: " + home.address +
		"/base also has v1.10.0, v1.3.0, v1.2.0 and 1 more"
	if len(got.Notes) != 1 || got.Notes[0] != want {
		t.Errorf("%q, want %q", got.Notes, want)
	}
	// One list of top, which no mirror has, and one of base.
	if n := lists(home); n != 2 {
		t.Errorf("%d lists were asked for", n)
	}

	// The lists are not put together: what only a mirror has is not there any more.
	first.have(t, "base v1.0.0\nbase v3.0.0: base v9")
	q.Roots = append(q.Roots, home.root("base", ">=v1.2"))
	got, err = mirrored(t, home, first).Resolve(t.Context(), q)
	if err != nil || home.summary(got.File) != "base v1.10.0; top v1.0.0" {
		t.Errorf("%s, %v", home.summary(got.File), err)
	}
}

// Without a solution all locations are tried, and the error names unreachable ones.
func TestNoMirrorHasASolution(t *testing.T) {
	home, mirror := newRegistry(t, 0), newRegistry(t, 0)
	home.have(t, "base v1.0.0\nbase v1.1.0")
	mirror.have(t, "base v1.0.0")
	res := mirrored(t, home, mirror)
	q := resolver.Request{Roots: []dependency.Root{home.root("base", ">=v2")}}
	got, err := res.Resolve(t.Context(), q)
	checkFailure(t, err, "Unsolvable", "(versions: v1.0.0, v1.1.0)")
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "is outdated: "+home.address+"/base also has v1.1.0") {
		t.Errorf("%q", got.Notes)
	}
	home.Close()
	got, err = res.Resolve(t.Context(), q)
	checkFailure(t, err, "Unsolvable", "(versions: v1.0.0)")
	if !strings.Contains(err.Error(), "(another endpoint may list more versions, and could not be reached: ") {
		t.Error(err)
	}
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "may be incomplete: ") {
		t.Errorf("%q", got.Notes)
	}
}
