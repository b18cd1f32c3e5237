package resolver_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

func TestResolve(t *testing.T) {
	for name, c := range map[string]struct{ have, roots, want, fails, says string }{
		"a tree": {
			"top v1.0.0: left >=v1; right >=v1\nleft v1.0.0: base ^v1.1.0\nright v1.0.0: base <v1.3.0\nbase v1.0.0\nbase v1.2.0\nbase v1.3.0\nbase v2.0.0",
			"top v1.0.0", "base v1.2.0; left v1.0.0; right v1.0.0; top v1.0.0", "", "",
		},
		"an older parent": {
			"top v1.0.0: left >=v1; base v1\nleft v1.0.0: base v1\nleft v2.0.0: base v2\nleft v1.1.0: base v2\nbase v1.0.0\nbase v2.0.0",
			"top *", "base v1.0.0; left v1.0.0; top v1.0.0", "", "",
		},
		"tags of all sorts": {"top v1.0.0\ntop latest\ntop v2\ntop v2.0.0-rc.1", "top *", "top v1.0.0", "", ""},
		"a moving tag": {
			"top latest: base >=v1.0.0-0\nbase v1.0.0\nbase v1.1.0-rc.1", "top latest", "base v1.1.0-rc.1; top latest", "", "",
		},
		"no tag":        {"top v1.0.0", "top latest", "", "TagNotFound", "does not exist"},
		"no repository": {"top v1.0.0", "bottom *", "", "RepositoryNotFound", "bottom"},
		"a vanished one": {
			"top v1.0.0: gone >=v1", "top *", "", "Unsolvable", "gone >=v1, whose repository does not exist",
		},
		"around it": {
			"top v1.0.0: base v1\ntop v1.1.0: gone >=v1\nbase v1.0.0", "top *", "base v1.0.0; top v1.0.0", "", "",
		},
		"no version": {
			"top v1.0.0: base >=v3\nbase v1.0.0\nbase v2.0.0", "top *", "", "Unsolvable", "which does not exist (versions:",
		},
		"a conflict": {
			"top v1.0.0: base <v2\nother v1.0.0: base >=v2\nbase v1.0.0\nbase v2.0.0", "top *; other *", "", "Unsolvable",
			"base <v2",
		},
		"a circle":           {"top v1.0.0: base v1\nbase v1.0.0: top v1", "top *", "", "DependencyCycle", " requires "},
		"needs itself":       {"top v1.0.0: top v1", "top *", "", "DependencyCycle", " requires "},
		"needs another self": {"top v1.0.0: top v2", "top *", "", "Unsolvable", "another version of itself"},
		"a short name":       {"top v1.0.0: short/base v1", "top *", "", "Unsolvable", "short/base"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, 0)
			r.have(t, c.have)
			var q resolver.Request
			for ask := range strings.SplitSeq(c.roots, "; ") {
				pkg, constraint, _ := strings.Cut(ask, " ")
				q.Roots = append(q.Roots, r.root(pkg, constraint))
			}
			got, err := newResolver(t, nil).Resolve(t.Context(), q)
			if c.fails != "" {
				checkFailure(t, err, c.fails, c.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := r.summary(got.File); s != c.want {
				t.Errorf("%s, want %s", s, c.want)
			}
			if problems := got.Check(q.Roots); problems != nil {
				t.Errorf("it does not fit: %q", problems)
			}
			if _, err := lockfile.Parse(lockfile.Encode(got.File)); err != nil {
				t.Errorf("its file cannot be read: %v", err)
			}
		})
	}
}

func checkFailure(t *testing.T, err error, code, says string) {
	t.Helper()
	if err == nil || !hasCode(err, code) {
		t.Fatalf("%v is no %s", err, code)
	}
	text := err.Error()
	var c *solver.Conflict
	if errors.As(err, &c) {
		text = c.Explanation.String()
	}
	if !strings.Contains(text, says) {
		t.Errorf("%s does not say %s", text, says)
	}
}

// Locked versions change as far as the caller allows.
func TestLockedVersionsMoveOnlyAsAllowed(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(t, "top v1.0.0: base >=v1.1.0\nlow v1.0.0: base <v1.3.0\nbase v1.0.0\nbase v1.1.0\nbase v1.2.0\nbase v1.4.0")
	res := newResolver(t, nil)
	locked := func(constraint string) []lockfile.Package {
		got, err := res.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("base", constraint)}})
		if err != nil {
			t.Fatal(err)
		}
		return got.Packages
	}
	top, low := r.root("top", "*"), r.root("low", "*")
	for name, c := range map[string]struct {
		kept    string
		root    dependency.Root
		moves   solver.Moves
		nearest bool
		want    string
	}{
		"up":                   {"v1.0.0", top, solver.Freely, false, "base v1.4.0; top v1.0.0"},
		"up as little as need": {"v1.0.0", top, solver.Upward, true, "base v1.1.0; top v1.0.0"},
		"up, which may not":    {"v1.0.0", top, solver.Never, false, ""},
		"down":                 {"v1.4.0", low, solver.Freely, true, "base v1.2.0; low v1.0.0"},
		"down, which may not":  {"v1.4.0", low, solver.Upward, false, ""},
		"it fits":              {"v1.2.0", low, solver.Never, false, "base v1.2.0; low v1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := res.Resolve(t.Context(), resolver.Request{
				Roots: []dependency.Root{c.root}, Locked: locked(c.kept), Moves: c.moves, Nearest: c.nearest,
			})
			if c.want == "" {
				checkFailure(t, err, "Unsolvable", "is installed and must not")
				return
			}
			if s := r.summary(got.File); err != nil || s != c.want {
				t.Errorf("%s, %v", s, err)
			}
		})
	}
}

// An upgrade selects the newest version of a package that is not locked, and changes only the locked packages that it
// needs newer.
func TestUpgradeMovesLockedPackagesThatMustMove(t *testing.T) {
	const packages = "top v1.0.0: mid >=v1, <v2; side >=v1\ntop v2.0.0: mid >=v2; side >=v1\ntop v3.0.0: low <v1; side >=v1\n" +
		"mid v1.0.0: leaf >=v1, <v2\nmid v2.0.0: leaf >=v2\nleaf v1.0.0\nleaf v2.0.0\nside v1.0.0: low >=v0.1\nside v1.1.0: low >=v0.1\nlow v0.9.0\nlow v1.0.0"
	for name, c := range map[string]struct {
		locked, free string
		moves        solver.Moves
		unreachable  string
		want, note   string
	}{
		"Dependencies": {
			"top v1.0.0; mid v1.0.0; leaf v1.0.0; side v1.0.0; low v1.0.0", "top", solver.Upward, "",
			"leaf v2.0.0; low v1.0.0; mid v2.0.0; side v1.0.0; top v2.0.0", "",
		},
		"ADowngradeIsAllowed": {
			"top v1.0.0; mid v1.0.0; leaf v1.0.0; side v1.0.0; low v1.0.0", "top", solver.Freely, "",
			"low v0.9.0; side v1.0.0; top v3.0.0", "",
		},
		"HeldByItsDependent": {
			"top v1.0.0; mid v1.0.0; leaf v1.0.0; side v1.0.0; low v1.0.0", "mid", solver.Upward, "",
			"leaf v1.0.0; low v1.0.0; mid v1.0.0; side v1.0.0; top v1.0.0", "",
		},
		"OthersAreNotReachable": {
			"top v1.0.0; mid v1.0.0; leaf v1.0.0; side v1.0.0; low v1.0.0", "side", solver.Upward, "leaf",
			"leaf v1.0.0; low v1.0.0; mid v1.0.0; side v1.1.0; top v1.0.0", "leaf stays at v1.0.0: its versions are unknown: ",
		},
		"ALockedOneWasNotListed": {
			"top v1.0.0; mid v1.0.0; leaf v1.5.0; side v1.0.0; low v1.0.0", "side", solver.Upward, "",
			"leaf v1.5.0; low v1.0.0; mid v1.0.0; side v1.1.0; top v1.0.0", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, 0)
			r.have(t, packages)
			q := resolver.Request{Roots: []dependency.Root{r.root("top", "<v4")}, Moves: c.moves, Upgrade: true}
			for one := range strings.SplitSeq(c.locked, "; ") {
				pkg, pin, _ := strings.Cut(one, " ")
				if pkg != c.free {
					got, err := newResolver(t, nil).
						Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root(pkg, strings.Replace(pin, "5", "0", 1))}})
					if err != nil {
						t.Fatal(err)
					}
					p, _ := got.Find(r.address + "/" + pkg)
					p.Version = pin
					q.Locked = append(q.Locked, p)
				}
			}
			if c.unreachable != "" {
				r.does(func(w http.ResponseWriter, req *http.Request) bool {
					if !strings.Contains(req.URL.Path, "/"+c.unreachable+"/") {
						return false
					}
					w.WriteHeader(http.StatusForbidden)
					return true
				})
			}
			got, err := newResolver(t, nil).Resolve(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if s := r.summary(got.File); s != c.want {
				t.Errorf("%s, want %s", s, c.want)
			}
			if notes := strings.Join(got.Notes, "\n"); c.note == "" && strings.Contains(notes, "stays at") ||
				!strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

// Packages of a registry that cannot be reached keep their locked versions. Without a solution, the failure is that of
// the registry.
func TestUnreachablePackagesKeepTheirLockedVersions(t *testing.T) {
	const packages = "top v1.0.0: mid >=v1, <v2\ntop v2.0.0: mid >=v2\nmid v1.0.0\nmid v2.0.0\nalien v1.0.0: visitor >=v1\nvisitor v1.0.0"
	for name, c := range map[string]struct{ roots, unreachable, want, fails string }{
		"OthersMove": {
			"top v2.0.0; alien v1.0.0", "alien visitor", "alien v1.0.0; mid v2.0.0; top v2.0.0; visitor v1.0.0", "",
		},
		"OthersMoveInARange": {
			"top >=v2; alien >=v1", "alien visitor", "alien v1.0.0; mid v2.0.0; top v2.0.0; visitor v1.0.0", "",
		},
		"TheyWouldHaveToMove": {"top v2.0.0; alien v1.0.0", "mid", "", "Unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, 0)
			r.have(t, packages)
			before, err := newResolver(t, nil).
				Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("top", "v1.0.0"), r.root("alien", "v1.0.0")}})
			if err != nil {
				t.Fatal(err)
			}
			var q resolver.Request
			for ask := range strings.SplitSeq(c.roots, "; ") {
				pkg, constraint, _ := strings.Cut(ask, " ")
				q.Roots = append(q.Roots, r.root(pkg, constraint))
			}
			for _, p := range before.Packages {
				if p.Repository != r.address+"/top" {
					q.Locked = append(q.Locked, p)
				}
			}
			r.does(func(w http.ResponseWriter, req *http.Request) bool {
				for name := range strings.FieldsSeq(c.unreachable) {
					if strings.Contains(req.URL.Path, "/"+name+"/") {
						w.WriteHeader(http.StatusForbidden)
						return true
					}
				}
				return false
			})
			got, err := newResolver(t, nil).Resolve(t.Context(), q)
			if c.fails != "" {
				checkFailure(t, err, c.fails, "cannot list the tags")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := r.summary(got.File); s != c.want {
				t.Errorf("%s, want %s", s, c.want)
			}
		})
	}
}
