package lockfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func digest(s string) oci.Digest { return oci.DigestOf([]byte(s)) }

// example returns a platform that needs two packages that share one.
func example() File {
	return File{
		Roots: []dependency.Root{{Package: "xpkg.test/a/top", Constraint: ">=v1.0.0"}, {
			Package: "xpkg.test/a/right", Constraint: "v1", By: "platform",
		}},
		Packages: []Package{
			{Repository: "xpkg.test/a/base", Version: "1.10", Digest: digest("base"), Kind: xpkg.Provider},
			{Repository: "xpkg.test/a/left", Digest: digest("left"), Kind: xpkg.Function, Dependencies: []dependency.Dependency{{
				Package: "xpkg.test/a/base", Constraint: "1.10",
			}}},
			{Repository: "xpkg.test/a/right", Version: "v1.2.0", Digest: digest("right"), Kind: xpkg.Configuration},
			{
				Repository: "xpkg.test/a/top", Version: "v1.0.0", Digest: digest("top"), Kind: xpkg.Configuration,
				Dependencies: []dependency.Dependency{{Package: "xpkg.test/a/right", Constraint: ">=v1, <v2"}, {
					Package: "xpkg.test/a/left", Constraint: digest("left").String(),
				}},
			},
		},
	}
}

func TestEncode(t *testing.T) {
	want := fmt.Sprintf(`# Written by xpkg resolve. It belongs into version control; xpkg install --lock installs it.
apiVersion: xpkg.dev/v1alpha1
kind: PackageLock
roots:
- package: xpkg.test/a/right
  constraint: v1
  by: platform
- package: xpkg.test/a/top
  constraint: ">=v1.0.0"
packages:
- package: xpkg.test/a/base
  version: "1.10"
  digest: %[1]s
  kind: Provider
- package: xpkg.test/a/left
  digest: %[2]s
  kind: Function
  dependencies:
  - package: xpkg.test/a/base
    constraint: "1.10"
- package: xpkg.test/a/right
  version: v1.2.0
  digest: %[3]s
  kind: Configuration
- package: xpkg.test/a/top
  version: v1.0.0
  digest: %[4]s
  kind: Configuration
  dependencies:
  - package: xpkg.test/a/left
    constraint: %[2]s
  - package: xpkg.test/a/right
    constraint: ">=v1, <v2"
`, digest("base"), digest("left"), digest("right"), digest("top"))
	if diff := cmp.Diff(want, string(Encode(example()))); diff != "" {
		t.Error(diff)
	}
	if got := string(Encode(File{})); !strings.HasSuffix(got, "\nroots: []\npackages: []\n") {
		t.Error(got)
	}
}

// texts are what versions and constraints can be, and what YAML could take for
// something else.
var texts = []string{
	"v1.0.0", "1.10", "latest", "true", "null", "no", "1e3", "0x10", ">=v1", "!=1", "* ", "v1: x", "#1", "a #b", "é",
	"\u2028", "'", `"`, "~1", "y", "main-1.2_3",
}

// Whatever the order of its parts, a file is the same bytes, and is read back as it
// was.
func TestEncodeIsOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := File{Roots: []dependency.Root{}, Packages: []Package{}}
		n := rapid.IntRange(0, 5).Draw(t, "packages")
		name := func(i int) string { return fmt.Sprintf("127.0.0.1:5000/p%d", i) }
		text := rapid.SampledFrom(texts)
		for i := range n {
			p := Package{Repository: name(i), Version: rapid.SampledFrom([]string{
				"", "v1.0.0", "1.10", "true", "null", "0x10", "1e3",
			}).Draw(t, "version"), Digest: digest(name(i)), Kind: xpkg.Provider, Signers: rapid.SliceOfN(text, 0, 3).Draw(t, "signers")}
			for range rapid.IntRange(0, 3).Draw(t, "dependencies") {
				p.Dependencies = append(p.Dependencies, dependency.Dependency{
					Package: name(rapid.IntRange(0, n-1).Draw(t, "to")), Constraint: text.Draw(t, "constraint"),
					Optional: rapid.Bool().Draw(t, "optional"),
				})
			}
			f.Packages = append(f.Packages, p)
			if rapid.Bool().Draw(t, "root") {
				f.Roots = append(f.Roots, dependency.Root{
					Package: p.Repository, Constraint: text.Draw(t, "asked"), Exact: rapid.Bool().Draw(t, "exact"),
					Optional: rapid.Bool().Draw(t, "condition"), By: rapid.SampledFrom([]string{"", "platform", "true"}).Draw(t, "by"),
				})
			}
		}
		want := Encode(f)
		shuffled := File{Roots: append([]dependency.Root{}, f.Roots...), Packages: clonePackages(f.Packages)}
		rand.Shuffle(
			len(shuffled.Roots), func(i, j int) { shuffled.Roots[i], shuffled.Roots[j] = shuffled.Roots[j], shuffled.Roots[i] },
		)
		rand.Shuffle(len(shuffled.Packages), func(i, j int) {
			shuffled.Packages[i], shuffled.Packages[j] = shuffled.Packages[j], shuffled.Packages[i]
		})
		if got := Encode(shuffled); !bytes.Equal(got, want) {
			t.Fatalf("%s\nand in another order\n%s", want, got)
		}
		again, err := Parse(want)
		if err != nil {
			t.Fatalf("%v\n%s", err, want)
		}
		f.sort()
		if diff := cmp.Diff(f, again, cmpopts.EquateComparable(oci.Digest{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	good := string(Encode(example()))
	change := func(old, by string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %q", old)
		}
		return strings.Replace(good, old, by, 1)
	}
	for name, c := range map[string]struct{ text, code, says string }{
		"nothing":          {"", "LockInvalid", "kind"},
		"another kind":     {change("PackageLock", "Plan"), "LockInvalid", "Plan"},
		"a later version":  {change("v1alpha1", "v9"), "LockVersion", "v9"},
		"an unknown field": {change("roots:", "hosts: []\nroots:"), "LockInvalid", "hosts"},
		"a field twice": {
			change("kind: PackageLock", "kind: PackageLock\nkind: PackageLock"), "LockInvalid", "kind",
		},
		"a merge conflict": {
			change("roots:", "<<<<<<< HEAD\nroots:"), "LockInvalid", "a merge conflict at line 4 of the lock file",
		},
		"a list": {"[]", "LockInvalid", "it has the wrong type: array"},
		"packages that are none": {
			change("roots:\n", "packages: 5\nroots:\n")[:strings.Index(good, "roots:")+len("packages: 5\n")], "LockInvalid",
			"packages has the wrong type: number",
		},
		"a package twice": {change("xpkg.test/a/left\n  digest", "xpkg.test/a/base\n  digest"), "LockInvalid", "twice"},
		"no digest":       {change("  digest: "+digest("base").String()+"\n", ""), "LockInvalid", "has no digest"},
		"half a digest":   {change(digest("base").String(), "sha256:12"), "LockInvalid", "sha256"},
		"no such kind":    {change("kind: Function", "kind: Chart"), "LockInvalid", "Chart"},
		"a short name": {
			change("- package: xpkg.test/a/base\n  version", "- package: a/base\n  version"), "LockInvalid", "registry",
		},
		"another spelling": {
			change("- package: xpkg.test/a/base\n  version", "- package: XPKG.test/a/base\n  version"), "LockInvalid", "XPKG",
		},
		"a tag in the name": {
			change("- package: xpkg.test/a/base\n  version", "- package: xpkg.test/a/base:v1\n  version"), "LockInvalid",
			"repository",
		},
		"a strange version": {change(`"1.10"`, `"../1"`), "LockInvalid", "version"},
		"a missing package": {
			change("  - package: xpkg.test/a/base", "  - package: xpkg.test/a/none"), "LockInvalid", "none",
		},
		"a missing root": {
			change("roots:\n- package: xpkg.test/a/right", "roots:\n- package: xpkg.test/a/none"), "LockInvalid", "none",
		},
		"too much": {good + strings.Repeat("#", maxBytes), "LockInvalid", "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			if err == nil || errcode.From(err).Code.Name != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Paths start at each root that requires a package, also through the same dependent.
func TestPathsStartAtEachRoot(t *testing.T) {
	needs := func(name string) []dependency.Dependency {
		return []dependency.Dependency{{Package: "xpkg.test/a/" + name}}
	}
	f := &File{
		Roots: []dependency.Root{{Package: "xpkg.test/a/one"}, {Package: "xpkg.test/a/two"}, {Package: "xpkg.test/a/none"}},
		Packages: []Package{
			{Repository: "xpkg.test/a/base"}, {Repository: "xpkg.test/a/mid", Dependencies: needs("base")},
			{Repository: "xpkg.test/a/none"},
			{Repository: "xpkg.test/a/one", Dependencies: needs("mid")},
			{Repository: "xpkg.test/a/two", Dependencies: needs("mid")},
		},
	}
	want := [][]string{{"xpkg.test/a/one", "xpkg.test/a/mid", "xpkg.test/a/base"}, {
		"xpkg.test/a/two", "xpkg.test/a/mid", "xpkg.test/a/base",
	}}
	if diff := cmp.Diff(want, f.Paths("xpkg.test/a/base")); diff != "" {
		t.Error(diff)
	}
}

func TestGraph(t *testing.T) {
	f, err := Parse(Encode(example()))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, p := range f.InstallOrder() {
		order = append(order, strings.TrimPrefix(p.Repository, "xpkg.test/a/"))
	}
	if diff := cmp.Diff([]string{"base", "left", "right", "top"}, order); diff != "" {
		t.Error(diff)
	}
	want := []Dependent{{By: "platform", Constraint: "v1"}, {Package: "xpkg.test/a/top", Constraint: ">=v1, <v2"}}
	if diff := cmp.Diff(want, f.Dependents("xpkg.test/a/right")); diff != "" {
		t.Error(diff)
	}
	paths := [][]string{{"xpkg.test/a/top", "xpkg.test/a/left", "xpkg.test/a/base"}}
	if diff := cmp.Diff(paths, f.Paths("xpkg.test/a/base")); diff != "" {
		t.Error(diff)
	}
	if got := f.Match("base"); len(got) != 1 || got[0].ShortVersion() != "1.10" {
		t.Errorf("%+v", got)
	}
	if got := f.Match("se"); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestCheck(t *testing.T) {
	f, err := Parse(Encode(example()))
	if err != nil {
		t.Fatal(err)
	}
	top, right := f.Roots[1], f.Roots[0]
	// The version 1.10 is a partial one, which no constraint but itself as a tag accepts.
	partial := "xpkg.test/a/left " + digest("left").Short() + " needs xpkg.test/a/base 1.10, but 1.10 is locked"
	for name, c := range map[string]struct {
		roots []dependency.Root
		want  []string
	}{
		"as it is": {[]dependency.Root{top, right}, nil},
		"a new one": {[]dependency.Root{top, right, {Package: "xpkg.test/a/base", Constraint: "v1"}}, []string{
			"you request xpkg.test/a/base v1, which is not locked",
		}},
		"one less": {[]dependency.Root{top}, []string{
			"the lock file has a request that was removed: platform requests xpkg.test/a/right v1",
		}},
		"changed": {[]dependency.Root{{Package: top.Package, Constraint: ">=v2"}, right}, []string{
			"you request xpkg.test/a/top >=v2, but >=v1.0.0 is locked",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(append(c.want, partial), f.Check(c.roots)); diff != "" {
				t.Error(diff)
			}
		})
	}
	f.Packages = append(f.Packages, Package{
		Repository: "xpkg.test/a/zero", Version: "v1.0.0", Digest: digest("zero"), Kind: xpkg.Provider,
	})
	f.Roots[1].Constraint = ">=v3"
	want := []string{
		"you request xpkg.test/a/top >=v3, but v1.0.0 is locked", partial, "no package requires xpkg.test/a/zero",
	}
	if diff := cmp.Diff(want, f.Problems()); diff != "" {
		t.Error(diff)
	}
}

func TestMatches(t *testing.T) {
	p := Package{
		Repository: "xpkg.test/a/top", Version: "v1", Kind: xpkg.Configuration, Dependencies: []dependency.Dependency{
			{Package: "xpkg.test/a/left", Constraint: "v1"}, {Package: "docker.io/a/right", Constraint: "v2"},
		}}
	left, right := dependency.Dependency{Package: "XPKG.test/a/left:v9", Constraint: "v1", Kind: string(xpkg.Provider)},
		dependency.Dependency{Package: "a/right", Constraint: "v2"}
	for name, c := range map[string]struct {
		kind  xpkg.Kind
		needs []dependency.Dependency
		says  string
	}{
		"as it is":     {xpkg.Configuration, []dependency.Dependency{right, left}, ""},
		"another kind": {xpkg.Provider, []dependency.Dependency{right, left}, "is a Provider, but locked as a Configuration"},
		"less":         {xpkg.Configuration, []dependency.Dependency{left}, "it does not need docker.io/a/right v2"},
		"more": {
			xpkg.Configuration, []dependency.Dependency{left, right, {Package: "evil.test/a/right", Constraint: "v2"}},
			"it needs evil.test/a/right v2, which is not locked",
		},
		"else": {
			xpkg.Configuration, []dependency.Dependency{right, {Package: left.Package, Constraint: "v2"}},
			"which is not locked; it does not need",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.Matches(c.kind, c.needs, nil)
			if c.says == "" && err == nil ||
				err != nil && c.says != "" && errors.Is(err, ErrContradicted) && strings.Contains(err.Error(), c.says) {
				return
			}
			t.Errorf("%v", err)
		})
	}
}

// Every file that can be parsed can be written, and parsing the result returns the
// same file.
func FuzzParse(f *testing.F) {
	f.Add(Encode(example()))
	f.Add(Encode(File{}))
	f.Add([]byte("apiVersion: xpkg.dev/v1alpha1\nkind: PackageLock\nroots: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			return
		}
		text := Encode(file)
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if second := Encode(again); !bytes.Equal(text, second) {
			t.Fatalf("%s\nand again\n%s", text, second)
		}
		file.InstallOrder()
		file.Problems()
		for _, p := range file.Packages {
			file.Paths(p.Repository)
		}
	})
}
