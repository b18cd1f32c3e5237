package oci_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// hardening: A2, A4
func TestParseReference(t *testing.T) {
	digest := oci.MustParseDigest(ocitest.EmptyDigest)
	tests := map[string]struct {
		in   string
		opts oci.ParseOptions
		want oci.Reference
		host string
		path string
	}{
		"Tag": {in: "xpkg.io/acme/pkg:v1.2.3", want: oci.Reference{
			Registry: "xpkg.io", Repository: "acme/pkg", Tag: "v1.2.3",
		}},
		"Digest": {in: "xpkg.io/acme/pkg@" +
			ocitest.EmptyDigest, want: oci.Reference{Registry: "xpkg.io", Repository: "acme/pkg", Digest: digest}},
		"A02TagAndDigest": {in: "xpkg.io/acme/pkg:v1@" +
			ocitest.EmptyDigest, want: oci.Reference{Registry: "xpkg.io", Repository: "acme/pkg", Tag: "v1", Digest: digest}},
		"Port": {in: "reg.local:5000/x:y", want: oci.Reference{
			Registry: "reg.local:5000", Repository: "x", Tag: "y",
		}},
		"Localhost": {in: "localhost/x:y", want: oci.Reference{Registry: "localhost", Repository: "x", Tag: "y"}},
		"LocalhostPort": {in: "localhost:5000/x:y", want: oci.Reference{
			Registry: "localhost:5000", Repository: "x", Tag: "y",
		}},
		"IPv6":         {in: "[::1]:5000/x:y", want: oci.Reference{Registry: "[::1]:5000", Repository: "x", Tag: "y"}},
		"IPv6LongForm": {in: "[0:0:0:0:0:0:0:1]/x:y", want: oci.Reference{Registry: "[::1]", Repository: "x", Tag: "y"}},
		"Separators": {in: "r.io/a__b/c-d/e---f/g.h_i:t", want: oci.Reference{
			Registry: "r.io", Repository: "a__b/c-d/e---f/g.h_i", Tag: "t",
		}},
		"TagCase": {in: "r.io/a:V1.0_RC-1", want: oci.Reference{
			Registry: "r.io", Repository: "a", Tag: "V1.0_RC-1",
		}},
		"A03Default": {
			in: "acme/pkg:v1", opts: oci.ParseOptions{DefaultRegistry: "docker.io"},
			want: oci.Reference{Registry: "docker.io", Repository: "acme/pkg", Tag: "v1"}, host: "index.docker.io",
		},
		"A03DefaultUnused": {
			in: "r.io/acme/pkg:v1", opts: oci.ParseOptions{DefaultRegistry: "docker.io"},
			want: oci.Reference{Registry: "r.io", Repository: "acme/pkg", Tag: "v1"},
		},
		"DockerHub": {
			in: "docker.io/acme/pkg:v1", want: oci.Reference{Registry: "docker.io", Repository: "acme/pkg", Tag: "v1"},
			host: "index.docker.io",
		},
		"DockerHubIndex": {
			in:   "index.docker.io/acme/pkg:v1",
			want: oci.Reference{Registry: "index.docker.io", Repository: "acme/pkg", Tag: "v1"}, host: "index.docker.io",
		},
		"DockerHubLibrary": {
			in: "docker.io/nginx:1", want: oci.Reference{Registry: "docker.io", Repository: "nginx", Tag: "1"},
			host: "index.docker.io", path: "library/nginx",
		},
		"Untagged": {in: "r.io/acme/pkg", opts: oci.ParseOptions{AllowUntagged: true}, want: oci.Reference{
			Registry: "r.io", Repository: "acme/pkg",
		}},
		"A04UpperCaseHost": {in: "Registry.Example.COM/a:b", want: oci.Reference{
			Registry: "registry.example.com", Repository: "a", Tag: "b",
		}},
		"A04TrailingDot": {in: "registry.example.com./a:b", want: oci.Reference{
			Registry: "registry.example.com", Repository: "a", Tag: "b",
		}},
		"A04TrailingDotAnd": {in: "registry.example.com.:443/a:b", want: oci.Reference{
			Registry: "registry.example.com:443", Repository: "a", Tag: "b",
		}},
		"A04International": {in: "bücher.example/a:b", want: oci.Reference{
			Registry: "xn--bcher-kva.example", Repository: "a", Tag: "b",
		}},
		"A04Homoglyph": {in: "аpple.example/a:b", want: oci.Reference{
			Registry: "xn--pple-43d.example", Repository: "a", Tag: "b",
		}},
		"A04FullWidth": {in: "ｅxample.com/a:b", want: oci.Reference{Registry: "example.com", Repository: "a", Tag: "b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := oci.ParseReference(tc.in, tc.opts)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %+v", got)
			}
			if want := cmpOr(tc.host, tc.want.Registry); got.Host() != want {
				t.Errorf("host %q", got.Host())
			}
			if want := cmpOr(tc.path, tc.want.Repository); got.RepositoryPath() != want {
				t.Errorf("path %q", got.RepositoryPath())
			}
			again, err := oci.ParseReference(got.String(), oci.ParseOptions{AllowUntagged: true})
			if err != nil || again != got {
				t.Errorf("%q reads back as %+v, %v", got, again, err)
			}
		})
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// hardening: A1
func TestParseReferenceRefusesInvalid(t *testing.T) {
	tests := map[string]struct {
		in string
		// at is the character that the message points at, counted from 1; 0 when
		// the whole is wrong.
		at int
	}{
		"Empty":             {in: "", at: 1},
		"NoRegistry":        {in: "acme/pkg:v1", at: 1},
		"NoRepository":      {in: "r.io/", at: 6},
		"OnlyRegistry":      {in: "r.io", at: 1},
		"OnlyTag":           {in: "r.io/:v1", at: 6},
		"UpperCase":         {in: "r.io/acme/Pkg:v1", at: 11},
		"EmptyTag":          {in: "r.io/acme/pkg:", at: 15},
		"NoVersion":         {in: "r.io/acme/pkg", at: 14},
		"Scheme":            {in: "https://r.io/acme/pkg:v1", at: 6},
		"SecondTag":         {in: "r.io/acme/pkg:v1:v2", at: 17},
		"TagSlash":          {in: "r.io/acme/pkg:v1/x", at: 17},
		"TagStartsWithDot":  {in: "r.io/acme/pkg:.v1", at: 15},
		"TagTooLong":        {in: "r.io/a:" + strings.Repeat("x", 129), at: 136},
		"RepositoryTooLong": {in: "r.io/" + strings.Repeat("x", 256) + ":v1", at: 261},
		"EmptyPart":         {in: "r.io/acme//pkg:v1", at: 10},
		"Parent":            {in: "r.io/acme/../pkg:v1", at: 10},
		"LeadingSeparator":  {in: "r.io/-acme/pkg:v1", at: 6},
		"TrailingSeparator": {in: "r.io/acme-/pkg:v1", at: 10},
		"ThreeUnderscores":  {in: "r.io/a___b:v1", at: 7},
		"TwoDots":           {in: "r.io/a..b:v1", at: 7},
		"Space":             {in: "r.io/ac me:v1", at: 8},
		"LineBreak":         {in: "r.io/acme:v1\n", at: 13},
		"NUL":               {in: "r.io/ac\x00me:v1", at: 8},
		"Digest63":          {in: "r.io/a@sha256:" + strings.Repeat("a", 63), at: 8},
		"Digest65":          {in: "r.io/a@sha256:" + strings.Repeat("a", 65), at: 8},
		"DigestUnknown":     {in: "r.io/a@sha257:" + strings.Repeat("a", 64), at: 8},
		"DigestEmpty":       {in: "r.io/a@", at: 8},
		"DigestUpperCase":   {in: "r.io/a@sha256:" + strings.Repeat("A", 64), at: 8},
		"TwoDigests":        {in: "r.io/a@" + ocitest.EmptyDigest + "@" + ocitest.EmptyDigest, at: 8},
		"PortZero":          {in: "r.io:0/a:b", at: 1},
		"PortTooLarge":      {in: "r.io:65536/a:b", at: 1},
		"PortWord":          {in: "r.io:http/a:b", at: 1},
		"PortPadded":        {in: "r.io:0080/a:b", at: 1},
		"BadIPv6":           {in: "[::g]/a:b", at: 1},
		"IPv6Zone":          {in: "[fe80::1%25eth0]/a:b", at: 1},
		"HostUnderscore":    {in: "my_registry.io/a:b", at: 1},
		"UserInfo":          {in: "user@r.io/a:b", at: 1},
		"Huge":              {in: "r.io/" + strings.Repeat("a/", 4000)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := oci.ParseReference(tc.in, oci.ParseOptions{})
			ocitest.WantCode(t, err, oci.ErrInvalidReference)
			if tc.at == 0 {
				return
			}
			var syntax *oci.SyntaxError
			if errors.As(err, &syntax) && syntax.Offset+1 == tc.at {
				return
			}
			if errors.Is(errors.Unwrap(err), oci.ErrInvalidDigest) || strings.Contains(err.Error(), "at character 8") {
				return
			}
			t.Errorf("%v does not point at character %d", err, tc.at)
		})
	}
}

// hardening: A1
func TestInvalidReferenceErrorMarksCharacter(t *testing.T) {
	_, err := oci.ParseReference("r.io/acme/Pkg:v1", oci.ParseOptions{})
	want := `cannot read reference "r.io/acme/Pkg:v1": the repository must be in lower case, at character 11: "r.io/acme/^Pkg:v1"`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

// hardening: A3
func TestReferenceWithoutRegistryGetsSuggestion(t *testing.T) {
	_, err := oci.ParseReference("crossplane-contrib/provider-nop:v0.4.0", oci.ParseOptions{})
	if err == nil || !strings.Contains(err.Error(), "xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0") {
		t.Errorf("%v", err)
	}
}

// go-containerregistry accepts each accepted reference and parses it to the same parts.
//
// hardening: A4
func TestReferenceAgreesWithForeignReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringMatching(
			`(localhost|[a-z]{1,3}\.io)(:[1-9][0-9]{1,3})?(/[a-z0-9]{1,4}([._-][a-z0-9]{1,3})?){1,3}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,9})?`,
		).Draw(t, "in")
		ref, err := oci.ParseReference(in, oci.ParseOptions{AllowUntagged: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(ref.Repository) < 2 || ref.Tag == "" {
			return
		}
		foreign, err := name.NewTag(in)
		if err != nil {
			t.Fatal(err)
		}
		if foreign.RegistryStr() != ref.Registry || foreign.RepositoryStr() != ref.Repository || foreign.TagStr() != ref.Tag {
			t.Fatalf("%+v against %v", ref, foreign)
		}
	})
}

// hardening: A4
func FuzzParseReference(f *testing.F) {
	for _, s := range []string{
		"r.io/a:b", "r.io/a@" + ocitest.EmptyDigest, "r.io/a:b@" + ocitest.EmptyDigest, "localhost:5000/a/b__c:v1",
		"[::1]:5000/x:y",
		"", ":", "@", "/", "a:b@c/d", "r.io:99999/x:y", "bücher.example/a:b", "xn--a.io/b:c", "r.io/a:\xff", "1.2.3.4/a:b",
		"..io/a:b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := oci.ParseReference(s, oci.ParseOptions{DefaultRegistry: "r.io", AllowUntagged: true})
		if err != nil {
			if !errors.Is(err, oci.ErrInvalidReference) {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := oci.ParseReference(ref.String(), oci.ParseOptions{AllowUntagged: true})
		if err != nil || again != ref {
			t.Fatalf("%q became %+v and then %+v, %v", s, ref, again, err)
		}
		if location := ref.Location(); oci.RepositoryLocation(location) != location || !ref.Satisfies(again) ||
			!oci.SameRepository(s, ref.String()) && ref.Registry != "r.io" {
			t.Fatalf("%q is not in one repository: %q, %q", s, location, oci.RepositoryLocation(location))
		}
	})
}
