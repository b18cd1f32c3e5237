package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Columns are aligned on a terminal, which shows wide characters in two cells.
//
// hardening: L2
func TestColumnsWithWideCharactersAreAligned(t *testing.T) {
	var out strings.Builder
	WriteTable(&out, []string{"NAME", "SOURCE", "STATE"}, [][]string{
		{"hello", "registry.example.org/a", "Healthy"}, {"提供者", "日本語", "正常"}, {"🚀x", "ｆｕｌｌ", "é"},
		{"zero\u200bwidth", "한국어", "tag\U000e0041"},
	})
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
