package yamldoc

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
)

// yamlPieces are what texts are made of that look like YAML often enough to reach
// every corner of the fast reader.
var yamlPieces = []string{
	"a", "b", "key", "é", "1", "0x1F", "1.5", "-1", "~", "null", "yes", "2001-01-01", "_", "\u00a0",
	": ", ":", ":\n", "- ", "-", "-\n", "\n", "\n", "\n", "\n  ", "\n    ", "\n ", "\n- ", "\n  - ", " ", "  ", "\n\n",
	"\n \n",
	"'", "\"", "''", "'x'", "\"x\"", "\\", "\\n", "\\\n", "\\u0041", "\\x20", "\\ ", "\\t", "\\\"",
	"|", ">", "|\n", ">\n", "|-\n  ", ">+\n  ", ">-\n  ", "|2\n   ", "+", "-", "2",
	"[", "]", "{", "}", ",", "[]", "{}", "[a, b]", "{a: b}", "#", " #", "# c\n", "\t", "?", "? ", "&a ", "*a", "!", "<<",
	"---", "...", "--- ", "%",
	"a: ", "b: ", "c: ", "a:\n", "b:\n  ", "\na: ", "\nb: ", "\n  a: ", "\n  b: ", "a: |\n  ", "a: >\n  ", "b: '", "b: \"",
	"key: x", "\nz: ",
}

// TestFastAgreesOnPieces is the property of FuzzFast on texts made of pieces.
func TestFastAgreesOnPieces(t *testing.T) {
	rounds, claimed := 200_000, 0
	if testing.Short() {
		rounds = 20_000
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		text := []string{"", "a: ", "a:\n  ", "- ", "a:\n- ", "{", "["}[r.IntN(7)]
		for range 1 + r.IntN(14) {
			text += yamlPieces[r.IntN(len(yamlPieces))]
		}
		if agree(t, []byte(text+"\n")) {
			claimed++
		}
	}
	if claimed < rounds/20 {
		t.Errorf("the fast reader has read %d of %d texts, so the test proves little", claimed, rounds)
	}
}

// TestFastAgreesOnDamagedFiles is the property of FuzzFast on parts of real files
// with a few damaged lines.
//
// hardening: D5
func TestFastAgreesOnDamagedFiles(t *testing.T) {
	lines := corpusLines(t)
	rounds, claimed := 50_000, 0
	if testing.Short() {
		rounds = 5_000
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		from := r.IntN(len(lines) - 30)
		part := slices.Clone(lines[from : from+3+r.IntN(25)])
		indent := len(part[0]) - len(strings.TrimLeft(part[0], " "))
		for i, line := range part {
			part[i] = strings.TrimPrefix(line, strings.Repeat(" ", indent))
		}
		for range r.IntN(4) {
			damage(r, part)
		}
		if agree(t, []byte(strings.Join(part, "")+"\n")) {
			claimed++
		}
	}
	if claimed < rounds/20 {
		t.Errorf("the fast reader has read %d of %d texts, so the test proves little", claimed, rounds)
	}
}

// damage changes one line.
func damage(r *rand.Rand, lines []string) {
	i := r.IntN(len(lines))
	line := lines[i]
	at := r.IntN(len(line) + 1)
	switch r.IntN(6) {
	case 0:
		lines[i] = " " + line
	case 1:
		lines[i] = strings.TrimPrefix(line, " ")
	case 2:
		lines[i] = line + line
	case 3:
		lines[i] = line[:at] + yamlPieces[r.IntN(len(yamlPieces))] + line[at:]
	case 4:
		lines[i] = line[:at]
	case 5:
		j := r.IntN(len(lines))
		lines[i], lines[j] = lines[j], line
	}
}

// corpusLines returns the lines of the Configurations of the corpus.
func corpusLines(t *testing.T) []string {
	dir := filepath.Join(corpus.Dir(t), "configurations")
	var lines []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		lines = append(lines, strings.SplitAfter(string(text), "\n")...)
		return err
	})
	if err != nil || len(lines) < 1000 {
		t.Skipf("%d lines in the Configurations of the corpus: %v", len(lines), err)
	}
	return lines
}

// TestFastReadsWhatGeneratorsWrite proves that the fast reader accepts the output
// of sigs.k8s.io/yaml, which all generators of CRDs use.
func TestFastReadsWhatGeneratorsWrite(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		value := map[string]any{"root": anyValue(r, 4)}
		text, err := yaml.Marshal(value)
		if err != nil {
			r.Fatal(err)
		}
		if checkEncoding(text) != nil {
			r.Skip("not text that a package may hold")
		}
		if !agree(r, text) {
			r.Fatalf("the fast reader gave up on\n%s", text)
		}
		limits := Limits{}.withDefaults()
		got, _, _ := fastJSON(text, &limits)
		want, _ := json.Marshal(value)
		if !bytes.Equal(got, canonical.Normalize(want)) {
			r.Fatalf("got\n%s, want\n%s for\n%s", got, want, text)
		}
	})
}

// anyValue draws a JSON value of at most so many levels.
func anyValue(r *rapid.T, levels int) any {
	word := rapid.OneOf(
		rapid.StringMatching(`[a-z]{0,8}`),
		rapid.StringMatching(`[ -~]{0,20}`),
		rapid.StringMatching(`([a-zé:#"'-]{1,9}[ ]?){1,30}\n?`),
		rapid.StringMatching(`([ a-z]{0,9}\n){1,5}`),
		rapid.SampledFrom([]string{
			"yes", "0x1", "1e3", "null", "~", "", "2020-01-01", "- a", "a: b", "|", "> x", "\ttab", "a\tb", "é\u00a0", " x ",
			"\x00", "a\u2028b", "😀",
		}),
	)
	kind := rapid.IntRange(0, 7).Draw(r, "kind")
	switch {
	case levels > 0 && kind >= 6:
		out := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(r, "size") {
			key := word.Draw(r, "key")
			if len(key) > 60 || strings.ContainsAny(key, "\n") || key == "<<" {
				key = "key" // generators write long keys with "? ", which is for the general reader, as is a merge
			}
			out[key] = anyValue(r, levels-1)
		}
		return out
	case levels > 0 && kind >= 4:
		out := []any{}
		for range rapid.IntRange(0, 4).Draw(r, "size") {
			out = append(out, anyValue(r, levels-1))
		}
		return out
	case kind == 3:
		return rapid.SampledFrom([]any{nil, true, false, 1, -7, 1.5, 1e300, int64(1) << 60}).Draw(r, "scalar")
	}
	return word.Draw(r, "string")
}
