package terminal

import (
	"bytes"
	"strings"
	"testing"
)

func TestHighlightAddsOnlyColors(t *testing.T) {
	text := "error: Usage: x\nprovider/boats   True   False   v1\nprovider/boats  v1  Healthy=True\n  create   CustomResourceDefinition a\n  delete   b\nplain text\n"
	got := highlight(text)
	for _, want := range []string{red + "error" + reset + ": ", red + "False" + reset, green + "Healthy=True" +
		reset, "  " + green + "create" + reset, red + "delete" + reset} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if plain := strings.NewReplacer(red, "", green, "", yellow, "", reset, "").Replace(got); plain != text {
		t.Errorf("the text has changed: %q", plain)
	}
}

func TestColorModes(t *testing.T) {
	var out bytes.Buffer
	for mode, want := range map[ColorMode]bool{ColorAuto: false, ColorAlways: true, ColorNever: false} {
		if mode.Enabled(&out) != want {
			t.Errorf("%s is not %v", mode, want)
		}
	}
}

// Quiet output has results and errors only.
func TestQuietMessages(t *testing.T) {
	var out bytes.Buffer
	w := &MessageWriter{Writer: &out, Program: "xpkg", Quiet: true}
	p := NewProgress(w)
	p.Set("working")
	p.End()
	for _, line := range []string{"note: a\n", "error: b\n"} {
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
			t.Error(n, err)
		}
	}
	if out.String() != "error: b\n" {
		t.Errorf("got %q", &out)
	}
}

// A pager that cannot be started does not lose the text, and a file is never paged.
func TestPager(t *testing.T) {
	var out bytes.Buffer
	w := &CheckedWriter{Writer: &out, Pager: "no-such-pager-exists"}
	long := strings.Repeat("line\n", 1000)
	if err := w.show(long); err != nil || out.String() != long {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
	for _, pager := range []string{"no-such-pager-exists", " "} {
		if w.Pager = pager; w.pageThrough(long) {
			t.Errorf("the pager %q was started", pager)
		}
	}
}
