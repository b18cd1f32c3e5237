package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// Columns are aligned on a terminal, which shows wide characters in two cells.
//
// hardening: L2
func TestColumnsWithWideCharactersAreAligned(t *testing.T) {
	var out strings.Builder
	err := WriteTable(&out, []string{"NAME", "SOURCE", "STATE"}, [][]string{
		{"hello", "registry.example.org/a", "Healthy"}, {"提供者", "日本語", "正常"}, {"🚀x", "ｆｕｌｌ", "é"}, {"zero\u200bwidth", "한국어", "tag\U000e0041"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "" +
		"NAME              SOURCE                   STATE\n" +
		"hello             registry.example.org/a   Healthy\n" +
		"提供者            日本語                   正常\n" +
		"🚀x               ｆｕｌｌ                 é\n" +
		"zero\\u200bwidth   한국어                   tag\\U000e0041\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// A line of progress fits in its terminal, also with wide characters.
func TestClippedTextFits(t *testing.T) {
	for _, text := range []string{"installing provider/hello", "提供者提供者提供者", "🚀🚀🚀", "a提b供c者"} {
		for limit := range 30 {
			got := clip(text, limit)
			if cells(got) > max(limit, 1) || got != text && !strings.HasSuffix(got, "…") || got == text && cells(text) > limit {
				t.Errorf("%q in %d cells is %q", text, limit, got)
			}
			if !utf8.ValidString(got) {
				t.Errorf("%q is not UTF-8", got)
			}
		}
	}
}
