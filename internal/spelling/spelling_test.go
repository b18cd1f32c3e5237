package spelling

import (
	"slices"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"same", "same", 0}, {"dependOn", "dependsOn", 1},
		{"kitten", "sitting", 3}, {"v1.0.0", "v1.0.1", 1},
	} {
		if got := Distance(tc.a, tc.b); got != tc.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
		if Distance(tc.a, tc.b) != Distance(tc.b, tc.a) {
			t.Errorf("Distance(%q, %q) depends on the order", tc.a, tc.b)
		}
	}
}

func TestSimilarNamesAreFound(t *testing.T) {
	words := []string{"provider-nop", "Provider-Nob", "provider-aws", "x", "provider-nop"}
	for word, want := range map[string][]string{
		"provider-nop": {"provider-nop", "Provider-Nob", "provider-aws"}, "provider-no": {"Provider-Nob", "provider-nop"},
		"else": nil,
	} {
		if got := Alike(word, words); !slices.Equal(got, want) {
			t.Errorf("Alike(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestReferencesWithASimilarEndAreFound(t *testing.T) {
	references := []string{
		"localhost:5000/acme/boats:v1.0.0", "ghcr.io/acme/longships@sha256:0123", "ghcr.io/boats/nop:v2",
	}
	for word, want := range map[string][]string{
		"baots": {references[0]}, "baots:v1.0.0": {references[0]}, "acme/baots": {references[0]},
		"localhost:5000/acme/boat:v1.0.0": {references[0]},
		"longship":                        {references[1]}, "acme/lognships": {references[1]}, "elsewhere": nil,
		"v1.0.0": nil, "localhost": nil,
	} {
		if got := AlikeReferences(word, references); !slices.Equal(got, want) {
			t.Errorf("AlikeReferences(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestTyposResembleFewWords(t *testing.T) {
	words := []string{"--as", "--all", "--context", "--cache-dir", "list", "ls", "tree", "up", "update", "upgrade"}
	for word, want := range map[string][]string{
		"--contxt": {"--context"}, "--cont": {"--context"}, "lst": {"list", "ls"}, "tere": {"tree"}, "upgarde": {"upgrade"},
		"updat": {"update"},
		"--yes": nil, "-n": nil, "pip": nil, "--aas": {"--as"}, "--al": nil, "--quite": nil,
	} {
		if got := Typo(word, words); !slices.Equal(got, want) {
			t.Errorf("Typo(%q) = %q, want %q", word, got, want)
		}
	}
}
