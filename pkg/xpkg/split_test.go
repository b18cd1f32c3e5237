package xpkg

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// hardening: D8
func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		want  []string
		lines []int
	}{
		"empty":            {"", nil, nil},
		"space":            {" \n\t\n", nil, nil},
		"separators":       {"---\n---\n", nil, nil},
		"comments":         {"# a\n---\n  # b\n", nil, nil},
		"shebang":          {"#!/usr/bin/env xpkg\n", nil, nil},
		"partly a comment": {"# a\nb: c\n", []string{"# a\nb: c\n"}, []int{1}},
		"one":              {"a: b\n", []string{"a: b\n"}, []int{1}},
		"no line end":      {"a: b", []string{"a: b\n"}, []int{1}},
		"several": {"a: b\n---\nc: d\n---\ne: f\n", []string{"a: b\n", "c: d\n", "e: f\n"}, []int{
			1, 3, 5,
		}},
		"separator first":              {"---\na: b\n", []string{"a: b\n"}, []int{2}},
		"empty between":                {"a: b\n---\n# x\n---\nc: d\n", []string{"a: b\n", "c: d\n"}, []int{1, 5}},
		"space after separator":        {"--- \t\na: b\n---\t\nc: d\n", []string{"a: b\n", "c: d\n"}, []int{2, 4}},
		"comment on separator":         {"--- # x\na: b\n", []string{"--- # x\na: b\n"}, []int{1}},
		"only a comment on separator":  {"--- # x\n---\na: b\n", []string{"a: b\n"}, []int{3}},
		"text on separator":            {"--- {a: b}\n--- |\nx\n", []string{"--- {a: b}\n", "--- |\nx\n"}, []int{1, 2}},
		"no separator":                 {"a: b\n----\n", []string{"a: b\n----\n"}, []int{1}},
		"no separator either":          {"a: b\n---c\n", []string{"a: b\n---c\n"}, []int{1}},
		"indented separator":           {"a: |\n  ---\n  b\n", []string{"a: |\n  ---\n  b\n"}, []int{1}},
		"end of document":              {"a: b\n...\nc: d\n", []string{"a: b\n", "c: d\n"}, []int{1, 3}},
		"end of document with comment": {"a: b\n... # x\n---\nc: d\n", []string{"a: b\n", "c: d\n"}, []int{1, 4}},
		"carriage returns":             {"a: b\r\n---\r\nc: d\r\n", []string{"a: b\r\n", "c: d\r\n"}, []int{1, 3}},
		"byte order mark":              {"\xef\xbb\xbfa: b\n", []string{"a: b\n"}, []int{1}},
		"byte order marks": {
			"\xef\xbb\xbfa: b\n---\n\xef\xbb\xbfc: d\n...\n\xef\xbb\xbf\xef\xbb\xbf---\ne: f\n",
			[]string{"a: b\n", "c: d\n", "e: f\n"}, []int{1, 3, 6},
		},
		"nothing but byte order marks": {"---\n\xef\xbb\xbf\n---\n\xef\xbb\xbf", nil, nil},
		"percent in a document":        {"a: |\n  x\n%b\n", []string{"a: |\n  x\n%b\n"}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := Split([]byte(c.in), "f.yaml", Limits{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var lines []int
			for i, d := range docs {
				got, lines = append(got, string(d.Raw)), append(lines, d.Line)
				if d.Index != i || d.File != "f.yaml" {
					t.Errorf("document %d is number %d of %s", i, d.Index, d.File)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.lines, lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSplitKeepsTheStreamUntouched(t *testing.T) {
	stream := []byte("a: b\n---\nc: d")
	before := bytes.Clone(stream)
	docs, err := Split(append(stream, "tail"...)[:len(stream)], "", Limits{})
	if err != nil || len(docs) != 2 {
		t.Fatal(docs, err)
	}
	if full := stream[:len(stream):len(stream)]; !bytes.Equal(full, before) {
		t.Errorf("the stream became %q", full)
	}
}

// hardening: D8
func TestSplitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		in     string
		limits Limits
		code   string
		line   int
	}{
		"stream limit":    {"a: b\n", Limits{StreamBytes: 4}, "StreamTooLarge", 0},
		"document limit":  {"a: b\n---\nc: ddd\n", Limits{DocumentBytes: 5}, "YAMLLimit", 3},
		"documents limit": {"---\n---\n---\n", Limits{Documents: 2}, "YAMLLimit", 3},
		"directive":       {"# x\n%YAML 1.2\n---\na: b\n", Limits{}, "UnsupportedYAML", 2},
		"text after end":  {"a: b\n... c\n", Limits{}, "InvalidYAML", 2},
		"UTF-16":          {"\xff\xfea\x00", Limits{}, "InvalidEncoding", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Split([]byte(c.in), "f.yaml", c.limits)
			findings := Findings(err)
			if len(findings) != 1 {
				t.Fatalf("got %v", err)
			}
			if f := findings[0]; f.Code.Name != c.code || f.Line != c.line || f.File != "f.yaml" {
				t.Errorf("got %v, want %s at line %d", f, c.code, c.line)
			}
		})
	}
}

// TestSplitOfJoined proves that joined documents are split again byte for byte.
func TestSplitOfJoined(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"a: b", "# c", "\n", "\n", "\r\n", "---", "--- ", "--- # c", "...", " ", "|", "\t", "-", "%x", "--- {a: b}",
		})).Draw(r, "text"), "")
		splitsBack(r, []byte(text))
	})
}

// splitsBack proves for one stream that its documents, joined and split, are the
// same documents.
func splitsBack(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, stream []byte) {
	t.Helper()
	docs, err := Split(stream, "", Limits{})
	if err != nil {
		return
	}
	again, err := Split(joinDocuments(docs), "", Limits{})
	if err != nil {
		t.Fatalf("joined documents do not split: %v", err)
	}
	if len(again) != len(docs) {
		t.Fatalf("%d documents became %d", len(docs), len(again))
	}
	for i := range docs {
		if !bytes.Equal(docs[i].Raw, again[i].Raw) {
			t.Fatalf("document %q became %q", docs[i].Raw, again[i].Raw)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		"a: b\n---\nc: d", "--- # x\na\n...\n---\n", "\xef\xbb\xbf---\r\na\r\n", "%YAML 1.2\n---\n", "--- |\n%a\n---\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) { splitsBack(t, stream) })
}
