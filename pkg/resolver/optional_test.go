package resolver_test

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// An absent optional dependency is neither installed nor looked up. An installed
// one must satisfy its constraint.
func TestOptional(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(
		t, "app v1.0.0: base v1; ?mail <v2; ?gone v1\nbase v1.0.0\nmail v1.0.0\nmail v2.0.0\ntop v1.0.0: app v1; mail >=v1",
	)
	r.recorded()
	res := newResolver(t, nil)
	q := resolver.Request{Roots: []dependency.Root{r.root("app", "*")}}
	got, err := res.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if s, asked := r.summary(got.File), r.recorded(); s != "app v1.0.0; base v1.0.0" || count(asked, "/mail/") != 0 ||
		count(asked, "/gone/") != 0 {
		t.Errorf("%s, with %q", s, asked)
	}
	text := string(lockfile.Encode(got.File))
	locked, err := lockfile.Parse([]byte(text))
	if err != nil || len(locked.Check(q.Roots)) != 0 || strings.Count(text, "optional: true") != 2 {
		t.Errorf("%v\n%s", err, text)
	}

	got, err = res.Resolve(t.Context(), resolver.Request{
		Roots: []dependency.Root{r.root("top", "*")}, Locked: locked.Packages,
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.summary(got.File); s != "app v1.0.0; base v1.0.0; mail v1.0.0; top v1.0.0" {
		t.Error(s)
	}
	if order := got.InstallOrder(); order[1].Repository != r.address+"/mail" {
		t.Errorf("mail comes after what works with it: %v", order)
	}

	// The explanation includes locked versions, and packages whose optional dependency
	// is absent.
	_, err = res.Resolve(t.Context(), resolver.Request{
		Roots: []dependency.Root{r.root("app", "*"), r.root("mail", "v2")}, Locked: locked.Packages,
	})
	checkFailure(t, err, "Unsolvable", "works only with "+r.address+"/mail <v2")
	other := dependency.Root{Package: r.address + "/base", Constraint: "v9", Optional: true, By: "provider/other"}
	_, err = res.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("app", "*"), other}})
	checkFailure(t, err, "Unsolvable", "provider/other works only with "+r.address+"/base v9")
}
