package wording

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFirstSentenceIsTheFirstOfAnyText composes texts of sentences whose dots, marks and line breaks are no ends. The
// first sentence is the same in every layout of the text.
func TestFirstSentenceIsTheFirstOfAnyText(t *testing.T) {
	sentences := []string{
		"Manages boats, berths and crews.", "Creates clusters, e.g. EKS or GKE, in a region.",
		"Requires Kubernetes v1.31.2 or Crossplane >=v2.0. Or later is not needed!",
		"See https://docs.example.org/a.b/c for details.", "The EPI (EKS Pod Identity) contract, i.e. AWS roles.",
		"Works with Node.js vs. Deno?", "Written by J. Smith for the U.S. Navy.",
		`Sets the mode to "Auto."`, "Takes approx. 5 minutes (incl. DNS).", "Uses `a.b.c` of the provider...",
		"Stores 3.5 GB of data.", "Wirkt auf Größen über 5 m.", "数据库。",
	}
	sentences[2] = strings.Replace(sentences[2], "v2.0. Or", "v2.0 or", 1)
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		first, rest := sentences[random.IntN(len(sentences))], sentences[random.IntN(len(sentences))]
		wrapped := []byte(first)
		for i, c := range wrapped {
			if c == ' ' && random.IntN(4) == 0 {
				wrapped[i] = '\n'
			}
		}
		between := []string{" ", "\n", "\n\n", "\r\n\r\n", "\n- ", "\n## "}
		if strings.HasSuffix(first, "...") { // An ellipsis ends only a paragraph.
			between = between[2:]
		}
		text := []string{"", "\n", "  "}[random.IntN(3)] + string(wrapped) + between[random.IntN(len(between))] + rest
		if got := FirstSentence(text, 200); got != first {
			t.Fatalf("FirstSentence(%q) = %q, want %q", text, got, first)
		}
	}
}

func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n \n": "", "no end": "no end", "# Boats\nManages boats.": "Boats", "Boats\n=====": "Boats =====",
		"AWS APIs: the contract\nand Compositions\nfor App. Second.": "AWS APIs: the contract and Compositions for App.",
		"Kinds:\n- one\n- two": "Kinds:", "- one\n- two": "- one", "Supports 2. Not 3.": "Supports 2.",
		strings.Repeat("\x80", 300): "…",
	} {
		if got := FirstSentence(text, 200); got != want {
			t.Errorf("FirstSentence(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestClipWordsEndsAtAWord cuts random texts: the result fits, is valid, and is the text or whole words of it with an
// ellipsis.
func TestClipWordsEndsAtAWord(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 5_000 {
		var words []string
		for range random.IntN(12) {
			words = append(words, strings.Repeat([]string{"a", "ß", "語", "🚀"}[random.IntN(4)], 1+random.IntN(6)))
		}
		text, most := strings.Join(words, " "), 4+random.IntN(60)
		got := ClipWords(text, most)
		kept, cut := strings.CutSuffix(got, ellipsis)
		whole := strings.HasPrefix(text+" ", kept+" ") || !strings.Contains(kept, " ")
		if len(got) > most || !utf8.ValidString(got) || !strings.HasPrefix(text, kept) || cut != (len(text) > most) ||
			!whole {
			t.Fatalf("ClipWords(%q, %d) = %q", text, most, got)
		}
	}
}
