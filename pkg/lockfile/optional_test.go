package lockfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// optional returns a file in which two packages work with others that need not be there,
// of which one is.
func optional() File {
	dep := func(name, constraint string, optional bool) dependency.Dependency {
		return dependency.Dependency{Package: "xpkg.test/a/" + name, Constraint: constraint, Optional: optional}
	}
	f := File{
		Roots: []dependency.Root{
			{Package: "xpkg.test/a/app", Constraint: "v1"}, {Package: "xpkg.test/a/mail", Constraint: "v1"},
			{Package: "xpkg.test/a/gone", Constraint: "<v2", Optional: true, By: "platform"},
		},
		Packages: []Package{
			{Repository: "xpkg.test/a/app", Dependencies: []dependency.Dependency{
				dep("gone", "v1", true), dep("mail", "<v2", true),
			}},
			{Repository: "xpkg.test/a/mail", Dependencies: []dependency.Dependency{dep("zone", "v1", false)}},
			{Repository: "xpkg.test/a/zone", Dependencies: []dependency.Dependency{dep("mail", "v1", true)}},
		},
	}
	for i := range f.Packages {
		p := &f.Packages[i]
		p.Version, p.Digest, p.Kind = "v1.0.0", digest(p.Repository), xpkg.Provider
	}
	return f
}

// A file with an absent optional dependency is valid, and records that it is
// absent.
func TestOptional(t *testing.T) {
	text := string(Encode(optional()))
	if strings.Count(text, "    optional: true\n") != 3 ||
		!strings.Contains(text, "- package: xpkg.test/a/gone\n  constraint: \"<v2\"\n  optional: true\n  by: platform\n") {
		t.Error(text)
	}
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Check(f.Roots); got != nil {
		t.Errorf("%q", got)
	}
	if got := f.Dependents("xpkg.test/a/mail"); len(got) != 1 || got[0].By != "you" {
		t.Errorf("it is needed by %+v", got)
	}
	want := []Dependent{{Package: "xpkg.test/a/app", Constraint: "<v2"}, {Package: "xpkg.test/a/zone", Constraint: "v1"}}
	if diff := cmp.Diff(want, f.OptionalDependents("xpkg.test/a/mail")); diff != "" {
		t.Error(diff)
	}
	if got := f.Paths("xpkg.test/a/mail"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	f.Packages[1].Version = "v2.0.0"
	f.Roots = append(f.Roots[:1:1], dependency.Root{
		Package: "xpkg.test/a/zone", Constraint: "v2", Optional: true, By: "platform",
	})
	unfit := []string{
		"platform works only with xpkg.test/a/zone v2, but v1.0.0 is locked",
		"xpkg.test/a/app v1.0.0 works only with xpkg.test/a/mail <v2, but v2.0.0 is locked",
		"no package requires xpkg.test/a/mail", "no package requires xpkg.test/a/zone",
		"xpkg.test/a/zone v1.0.0 works only with xpkg.test/a/mail v1, but v2.0.0 is locked",
	}
	if diff := cmp.Diff(unfit, f.Problems()); diff != "" {
		t.Error(diff)
	}
}

func TestMatchesOptional(t *testing.T) {
	p := optional().Packages[0]
	gone, mail := dependency.Dependency{Package: "xpkg.test/a/gone", Constraint: "v1", Optional: true},
		dependency.Dependency{Package: "xpkg.test/a/mail", Constraint: "<v2", Optional: true}
	if err := p.Matches(xpkg.Provider, []dependency.Dependency{mail, gone}, nil); err != nil {
		t.Error(err)
	}
	mail.Optional = false
	err := p.Matches(xpkg.Provider, []dependency.Dependency{mail, gone}, nil)
	if !errors.Is(err, ErrContradicted) || !strings.Contains(
		err.Error(),
		"it needs xpkg.test/a/mail <v2, which is not locked; it has no optional dependency on xpkg.test/a/mail <v2",
	) {
		t.Error(err)
	}
}

// Required dependencies come first in any case, and optional ones come first where
// that causes no cycle.
func TestOrderWithOptional(t *testing.T) {
	names := func(f *File) string {
		var out []string
		for _, p := range f.InstallOrder() {
			out = append(out, strings.TrimPrefix(p.Repository, "xpkg.test/a/"))
		}
		return strings.Join(out, " ")
	}
	f := optional()
	if got := names(&f); got != "zone mail app" {
		t.Error(got)
	}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(rt, "packages")
		name := func(i int) string { return fmt.Sprintf("xpkg.test/a/p%d", i) }
		var f File
		for i := range n {
			p := Package{Repository: name(i)}
			for range rapid.IntRange(0, 3).Draw(rt, "dependencies") {
				d := dependency.Dependency{
					Package: name(rapid.IntRange(0, n-1).Draw(rt, "to")), Optional: rapid.Bool().Draw(rt, "optional"),
				}
				// Names of those who are needed are in no order that helps.
				if d.Optional || (d.Package > p.Repository) != (n%2 == 0) && d.Package != p.Repository {
					p.Dependencies = append(p.Dependencies, d)
				}
			}
			f.Packages = append(f.Packages, p)
		}
		place := map[string]int{}
		for i, p := range f.InstallOrder() {
			place[p.Repository] = i
		}
		if len(place) != n {
			rt.Fatalf("%v", place)
		}
		for _, p := range f.Packages {
			for _, d := range p.Dependencies {
				late := place[d.Package] > place[p.Repository]
				if late && !d.Optional {
					rt.Fatalf("%s needs %s: %v", p.Repository, d.Package, place)
				}
				alone := !slices.ContainsFunc(f.Packages, func(other Package) bool {
					return slices.ContainsFunc(
						other.Dependencies, func(back dependency.Dependency) bool { return back.Package == p.Repository },
					)
				})
				if late && alone {
					rt.Fatalf("%s works with %s, and nothing leads back: %v", p.Repository, d.Package, place)
				}
			}
		}
	})
}
