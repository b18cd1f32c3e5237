package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// Each command has a manual page with its flags and examples, and text of the grammar is never read as a macro.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	var out strings.Builder
	if code := Main(t.Context(), []string{"xpkg", "man", dir}, &terminal.Env{Stdout: &out, Stderr: &out}); code != 0 {
		t.Fatal(out.String())
	}
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		t.Fatal(err)
	}
	overview := readPage(t, filepath.Join(dir, "xpkg.1"))
	for _, command := range parser.Model.Leaves(true) {
		name := pageOf(command)
		page := readPage(t, filepath.Join(dir, name+".1"))
		want := []string{".SH NAME\n" + escape(name) + ` \- `, ".SH SYNOPSIS\n", ".SH EXIT STATUS\n"}
		for _, group := range command.AllFlags(true) {
			for _, f := range group {
				want = append(want, ".B "+escape(f.String())+"\n")
			}
		}
		for _, line := range examplesOf("xpkg", command) {
			want = append(want, "\n"+escape(line)+"\n")
		}
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
		if !strings.Contains(overview, ".B "+escape(name+"(1)")+"\n") {
			t.Errorf("the overview lacks %s", name)
		}
	}
}

// readPage returns a page, and fails if a line begins with anything but a known macro or text.
func readPage(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	macros := []string{`.\"`, ".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".nf", ".fi"}
	for line := range strings.Lines(string(raw)) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if strings.HasPrefix(word, "'") || strings.HasPrefix(word, ".") && !slices.Contains(macros, word) {
			t.Errorf("%s: %q is a macro", file, line)
		}
	}
	return string(raw)
}

func TestManPageEscapes(t *testing.T) {
	for text, want := range map[string]string{
		"a-b": `a\-b`, ".SH": `\&.SH`, "'x": `\&'x`, `C:\x`: `C:\ex`, "a\nb": "a b",
	} {
		if got := escape(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
