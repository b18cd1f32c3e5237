package oci_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// hardening: E3
func TestToDNSLabel(t *testing.T) {
	long := strings.Repeat("a", 62)
	tests := map[string]struct{ in, want string }{
		"Repository":       {"upbound/provider-family-aws", "upbound-provider-family-aws"},
		"AllSeparators":    {"a.b/c:d-e", "a-b-c-d-e"},
		"Trimmed":          {"/-.a.-/", "a"},
		"Dropped":          {"acme/My_Pkg@v1", "acme-ykgv1"},
		"Cut":              {strings.Repeat("a", 70), strings.Repeat("a", 63)},
		"CutAtSeparator":   {long + "/b", long},
		"CutCountsDropped": {"_" + long + "b", long},
		"Empty":            {"", ""},
		"OnlySeparators":   {"-./:", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := oci.ToDNSLabel(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFriendlyID(t *testing.T) {
	const hash = "1234567890abcdef"
	tests := map[string]struct{ name, hash, want string }{
		"Short":    {"provider-nop", hash, "provider-nop-1234567890ab"},
		"LongName": {strings.Repeat("n", 60), hash, strings.Repeat("n", 50) + "-1234567890ab"},
		"Source":   {"xpkg.io/acme/pkg", hash, "xpkg-io-acme-pkg-1234567890ab"},
		"NoHash":   {"provider-nop", "", "provider-nop"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := oci.FriendlyID(tc.name, tc.hash); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFriendlyIDIsALabel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := oci.FriendlyID(rapid.String().Draw(t, "name"), rapid.StringMatching(`[0-9a-f]{0,64}`).Draw(t, "hash"))
		if len(id) > oci.MaxLabel || strings.HasPrefix(id, "-") || strings.HasSuffix(id, "-") ||
			strings.ContainsFunc(id, func(r rune) bool { return !oci.IsLowerAlnum(r) && r != '-' }) {
			t.Fatalf("%q is not a DNS label", id)
		}
	})
}
