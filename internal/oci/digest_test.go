package oci

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

func TestB06ParseDigest(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	tests := map[string]struct {
		in   string
		want failure.Code
	}{
		"Empty":         {"", ErrInvalidDigest},
		"NoAlgorithm":   {zeros, ErrInvalidDigest},
		"Traversal":     {"sha256:../../../../etc/passwd", ErrInvalidDigest},
		"TraversalLong": {"sha256:" + strings.Repeat("../", 21) + "a", ErrInvalidDigest},
		"UpperCase":     {"sha256:" + strings.Repeat("A", 64), ErrInvalidDigest},
		"UpperName":     {"SHA256:" + zeros, ErrInvalidDigest},
		"LeadingSpace":  {" sha256:" + zeros, ErrInvalidDigest},
		"TrailingSpace": {"sha256:" + zeros + " ", ErrInvalidDigest},
		"InnerSpace":    {"sha256: " + zeros[1:], ErrInvalidDigest},
		"Short":         {"sha256:" + zeros[1:], ErrInvalidDigest},
		"Long":          {"sha256:" + zeros + "0", ErrInvalidDigest},
		"UnicodeDigits": {"sha256:" + strings.Repeat("٣", 32), ErrInvalidDigest},
		"NotHex":        {"sha256:" + strings.Repeat("g", 64), ErrInvalidDigest},
		"Unknown":       {"sha1024:" + zeros, ErrInvalidDigest},
		"SHA512":        {"sha512:" + zeros + zeros, ErrUnsupportedDigest},
		"SHA384":        {"sha384:" + zeros, ErrUnsupportedDigest},
		"Blake3":        {"blake3:" + zeros, ErrUnsupportedDigest},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDigest(tc.in)
			wantCode(t, err, tc.want)
		})
	}
}

func TestDigestForms(t *testing.T) {
	d := DigestOf(nil)
	if d.String() != digestOfNothing || d.Short() != "e3b0c44298fc" || d.IsZero() {
		t.Errorf("%s %s", d, d.Short())
	}
	var zero Digest
	if zero.String() != "" || zero.Hex() != "" || zero.Short() != "" || !zero.IsZero() {
		t.Errorf("the zero digest is %q", zero)
	}
	data, err := json.Marshal(map[Digest]Digest{d: zero})
	if err != nil || string(data) != `{"`+digestOfNothing+`":""}` {
		t.Errorf("%s %v", data, err)
	}
	var back map[Digest]Digest
	if err := json.Unmarshal(data, &back); err != nil || len(back) != 1 {
		t.Errorf("%v %v", back, err)
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add(digestOfNothing)
	f.Add("sha512:" + strings.Repeat("0", 128))
	f.Add("sha256:../x")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDigest(s)
		if err == nil && d.String() != s && !d.IsZero() {
			t.Fatalf("%q became %q", s, d)
		}
	})
}
