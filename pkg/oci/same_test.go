package oci_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/idna"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// repositories are groups of all spellings of one repository.
var repositories = [][]string{
	{"xpkg.io/acme/pkg", "XPKG.io/acme/pkg", "xpkg.io./acme/pkg"},
	{"xpkg.io/acme/pkg2"},
	{"xpkg.io/pkg"},
	{"xpkg.io/library/pkg"},
	{"xpkg.io:443/acme/pkg", "xpkg.IO.:443/acme/pkg"},
	{"xpkg.io:5000/acme/pkg"},
	{"bücher.example/pkg", "xn--bcher-kva.example/pkg", "BÜCHER.example./pkg"},
	{"[::1]:5000/pkg", "[0:0:0:0:0:0:0:1]:5000/pkg"},
	{"docker.io/acme/pkg", "index.docker.io/acme/pkg", "Docker.io/acme/pkg"},
	{"docker.io/pkg", "index.docker.io/pkg", "docker.io/library/pkg", "index.docker.io/library/pkg", "INDEX.docker.io./pkg"},
	{"registry-1.docker.io/acme/pkg"},
	{"docker.io.example.com/acme/pkg"},
}

var (
	digestA = ":v1@" + ocitest.EmptyDigest
	digestB = ":v1@sha256:" + strings.Repeat("b", 64)
)

// versions are the parts of a reference after its repository.
var versions = []string{"", ":v1", ":v2", digestA[3:], digestB[3:], digestA, digestB, ":v2" + digestA[3:]}

// Each row is a reference, each column another one, in the order of versions.
var (
	sameVersion = []string{
		"y.......",
		".y...yy.",
		"..y....y",
		"...y....",
		"....y...",
		".y...yy.",
		".y...yy.",
		"..y....y",
	}
	satisfies = []string{
		"y.......",
		"yy......",
		"y.y.....",
		"y..y....",
		"y...y...",
		"yy.y.y..",
		"yy..y.y.",
		"y.yy...y",
	}
)

// every calls a function for all pairs of references in all spellings. Same reports whether both are in one repository.
func every(call func(a, b string, i, j int, same bool)) {
	for g, spellings := range repositories {
		for h, others := range repositories {
			for _, a := range spellings {
				for _, b := range others {
					for i := range versions {
						for j := range versions {
							call(a+versions[i], b+versions[j], i, j, g == h)
						}
					}
				}
			}
		}
	}
}

func parse(tb rapid.TB, s string) oci.Reference {
	tb.Helper()
	ref, err := oci.ParseReference(s, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		tb.Fatal(err)
	}
	return ref
}

func TestReferencesAreComparedInAllSpellings(t *testing.T) {
	parsed := map[string]oci.Reference{}
	every(func(a, _ string, _, _ int, _ bool) {
		if _, ok := parsed[a]; !ok {
			parsed[a] = parse(t, a)
		}
	})
	every(func(a, b string, i, j int, same bool) {
		x, y := parsed[a], parsed[b]
		if got := x.SameRepository(y); got != same {
			t.Errorf("%s and %s are in the same repository: %t", a, b, got)
		}
		if want := same && sameVersion[i][j] == 'y'; x.SameVersion(y) != want {
			t.Errorf("%s and %s are the same version: %t", a, b, !want)
		}
		if want := same && satisfies[i][j] == 'y'; x.Satisfies(y) != want {
			t.Errorf("%s satisfies %s: %t", a, b, !want)
		}
	})
}

func TestTextIsComparedAsReferences(t *testing.T) {
	for _, c := range []struct {
		a, b             string
		repository, same bool
	}{
		{"Xpkg.io/acme/pkg:v1", "xpkg.io/acme/pkg:v1@" + ocitest.EmptyDigest, true, true},
		{"Xpkg.io/acme/pkg", "xpkg.io/acme/pkg:v1", true, false},
		{"docker.io/pkg:v1", "index.docker.io/library/pkg:v1", true, true},
		{"provider-in-the-cache", "provider-in-the-cache", true, true},
		{"provider-in-the-cache", "docker.io/provider-in-the-cache", false, false},
		{"acme/pkg:v1", "acme/pkg:v2", false, false}, // The registry is not known.
		{"", "", true, true},
	} {
		if got := oci.SameRepository(c.a, c.b); got != c.repository {
			t.Errorf("%q and %q are in the same repository: %t", c.a, c.b, got)
		}
		if got := oci.SameVersion(c.a, c.b); got != c.same {
			t.Errorf("%q and %q are the same version: %t", c.a, c.b, got)
		}
	}
}

// reference returns a reference of a small set, so that equal ones are frequent, and another spelling of it.
func reference(rt *rapid.T, label string) (ref, respelled oci.Reference) {
	spellings := rapid.SampledFrom(repositories).Draw(rt, label+" repository")
	version := rapid.SampledFrom(versions).Draw(rt, label+" version")
	spelling := func(name string) oci.Reference {
		s := rapid.SampledFrom(spellings).Draw(rt, label+" "+name)
		host, path, _ := strings.Cut(s, "/")
		if rapid.Bool().Draw(rt, label+" upper "+name) {
			host = strings.ToUpper(host)
		}
		return parse(rt, host+"/"+path+version)
	}
	return spelling("spelling"), spelling("respelling")
}

func TestComparisonsAreRelations(t *testing.T) {
	relations := map[string]func(a, b oci.Reference) bool{
		"SameRepository": oci.Reference.SameRepository, "SameVersion": oci.Reference.SameVersion,
		"Satisfies": oci.Reference.Satisfies,
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, respelled := reference(rt, "a")
		b, _ := reference(rt, "b")
		c, _ := reference(rt, "c")
		for name, related := range relations {
			switch {
			case !related(a, respelled):
				rt.Errorf("%s: %s is not related to %s", name, a, respelled)
			case related(a, b) != related(respelled, b), related(b, a) != related(b, respelled):
				rt.Errorf("%s: %s and %s differ for %s", name, a, respelled, b)
			case related(a, b) && related(b, c) && !related(a, c):
				rt.Errorf("%s is not transitive: %s, %s, %s", name, a, b, c)
			case name != "Satisfies" && related(a, b) != related(b, a):
				rt.Errorf("%s is not symmetric: %s, %s", name, a, b)
			}
		}
		if a.Satisfies(b) && b.Satisfies(a) && !a.SameVersion(b) {
			rt.Errorf("%s and %s satisfy each other, and are not the same version", a, b)
		}
		if same := a.SameRepository(b); same != (a.Location() == b.Location()) ||
			same != oci.SameRepository(a.String(), b.String()) {
			rt.Errorf("the locations of %s and %s do not tell whether they are in the same repository", a, b)
		}
		if again := oci.RepositoryLocation(a.Location()); again != a.Location() {
			rt.Errorf("the location %s has the location %s", a.Location(), again)
		}
	})
}

// Host names that need no conversion are not converted.
func TestHostsAgreeWithIDNA(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		host := rapid.StringMatching(`[a-zA-Z0-9.-]{1,8}\.[a-z0-9-]{1,4}(\.[a-z]{1,3})?`).Draw(rt, "host")
		want, failed := idna.Lookup.ToASCII(host)
		ref, err := oci.ParseReference(host+"/pkg", oci.ParseOptions{AllowUntagged: true})
		if err == nil && (failed != nil || ref.Registry != want) {
			rt.Errorf("%s became %s, want %s, %v", host, ref.Registry, want, failed)
		}
	})
}

func ExampleReference_Satisfies() {
	installed := oci.MustParseReference("xpkg.crossplane.io/acme/provider:v1.2.0@" + ocitest.EmptyDigest)
	for _, request := range []string{
		"XPKG.crossplane.io/acme/provider:v1.2.0", "xpkg.crossplane.io/acme/provider:v1.3.0",
	} {
		fmt.Println(installed.Satisfies(oci.MustParseReference(request)))
	}
	// Output:
	// true
	// false
}
