package oci_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// hardening: B6
func TestParseDigest(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	tests := map[string]struct {
		in   string
		want errcode.Code
	}{
		"Empty":         {"", oci.ErrInvalidDigest},
		"NoAlgorithm":   {zeros, oci.ErrInvalidDigest},
		"Traversal":     {"sha256:../../../../etc/passwd", oci.ErrInvalidDigest},
		"TraversalLong": {"sha256:" + strings.Repeat("../", 21) + "a", oci.ErrInvalidDigest},
		"UpperCase":     {"sha256:" + strings.Repeat("A", 64), oci.ErrInvalidDigest},
		"UpperName":     {"SHA256:" + zeros, oci.ErrInvalidDigest},
		"LeadingSpace":  {" sha256:" + zeros, oci.ErrInvalidDigest},
		"TrailingSpace": {"sha256:" + zeros + " ", oci.ErrInvalidDigest},
		"InnerSpace":    {"sha256: " + zeros[1:], oci.ErrInvalidDigest},
		"Short":         {"sha256:" + zeros[1:], oci.ErrInvalidDigest},
		"Long":          {"sha256:" + zeros + "0", oci.ErrInvalidDigest},
		"UnicodeDigits": {"sha256:" + strings.Repeat("٣", 32), oci.ErrInvalidDigest},
		"NotHex":        {"sha256:" + strings.Repeat("g", 64), oci.ErrInvalidDigest},
		"Unknown":       {"sha1024:" + zeros, oci.ErrInvalidDigest},
		"SHA512":        {"sha512:" + zeros + zeros, oci.ErrUnsupportedDigest},
		"SHA384":        {"sha384:" + zeros, oci.ErrUnsupportedDigest},
		"Blake3":        {"blake3:" + zeros, oci.ErrUnsupportedDigest},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := oci.ParseDigest(tc.in)
			ocitest.WantCode(t, err, tc.want)
		})
	}
}

// hardening: B6
func TestDigestForms(t *testing.T) {
	d := oci.DigestOf(nil)
	if d.String() != ocitest.EmptyDigest || d.Short() != "e3b0c44298fc" || d.IsZero() {
		t.Errorf("%s %s", d, d.Short())
	}
	var zero oci.Digest
	if zero.String() != "" || zero.Hex() != "" || zero.Short() != "" || !zero.IsZero() {
		t.Errorf("the zero digest is %q", zero)
	}
	data, err := json.Marshal(map[oci.Digest]oci.Digest{d: zero})
	if err != nil || string(data) != `{"`+ocitest.EmptyDigest+`":""}` {
		t.Errorf("%s %v", data, err)
	}
	var back map[oci.Digest]oci.Digest
	if err := json.Unmarshal(data, &back); err != nil || len(back) != 1 {
		t.Errorf("%v %v", back, err)
	}
}

func TestArtifactTags(t *testing.T) {
	d := oci.DigestOf([]byte("x"))
	for _, suffix := range []string{"", ".sig", ".claim-1.1s", "-x"} {
		tag := oci.ArtifactTag(d, suffix)
		if want := "sha256-" + d.Hex() + suffix; tag != want {
			t.Errorf("got %q, want %q", tag, want)
		}
		if subject, got, ok := oci.ParseArtifactTag(tag); !ok || subject != d || got != suffix {
			t.Errorf("%q: got %s, %q, %v", tag, subject, got, ok)
		}
	}
	for _, tag := range []string{"", "v1.0.0", "sha256-", "sha256-abc.sig", "x" + oci.ArtifactTag(d, ""), "sha256-" +
		strings.ToUpper(d.Hex()), "sha256-" + strings.Repeat("0", 64) + ".sig", "sha512-" + d.Hex() + d.Hex()} {
		if subject, suffix, ok := oci.ParseArtifactTag(tag); ok || suffix != "" || !subject.IsZero() {
			t.Errorf("%q: got %s, %q, %v", tag, subject, suffix, ok)
		}
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add(ocitest.EmptyDigest)
	f.Add("sha512:" + strings.Repeat("0", 128))
	f.Add("sha256:../x")
	f.Add("")
	f.Add(oci.ArtifactTag(oci.DigestOf(nil), ".sig"))
	f.Fuzz(func(t *testing.T, s string) {
		d, err := oci.ParseDigest(s)
		if err == nil && d.String() != s {
			t.Fatalf("%q became %q", s, d)
		}
		if subject, suffix, ok := oci.ParseArtifactTag(s); ok && oci.ArtifactTag(subject, suffix) != s {
			t.Fatalf("%q became %s and %q", s, subject, suffix)
		}
	})
}
