package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// session returns the image of a session whose lines are a minute apart.
func session(t *testing.T, text string) string {
	t.Helper()
	clock := time.Unix(0, 0)
	lines, err := read(strings.NewReader(text), func() time.Time {
		clock = clock.Add(time.Minute)
		return clock
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := render(&out, lines); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The image is well-formed whatever a program prints, and pauses are shortened.
func TestRecording(t *testing.T) {
	image := session(t, "$ xpkg list <all> & \"more\"\nNAME\x1b[31m\x00\tAGE\n\nüñí ✓\n"+strings.Repeat("x", columns+1)+
		"\n")
	for d := xml.NewDecoder(strings.NewReader(image)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, image)
		}
	}
	for _, want := range []string{
		`<text class="c" y="14" style="animation-delay:2.20s">$ xpkg list &lt;all&gt; &amp; &#34;more&#34;</text>`,
		`<text y="32" style="animation-delay:3.70s">NAME[31m    AGE</text>`,
		`style="animation-delay:8.20s">` + strings.Repeat("x", columns) + "</text>", `style="animation-delay:8.20s">x</text>`,
	} {
		if !strings.Contains(image, want) {
			t.Errorf("%s is missing in\n%s", want, image)
		}
	}
	if strings.Contains(image, "@keyframes scroll") {
		t.Error("a session that fits on the screen scrolls")
	}
}

// A long session scrolls until its last line is at the bottom.
func TestRecordingScrolls(t *testing.T) {
	image := session(t, strings.Repeat("line\n", rows+3))
	if want := fmt.Sprintf("100%% { transform: translateY(-%dpx); }", 3*lineHeight); !strings.Contains(image, want) {
		t.Errorf("%s is missing in\n%s", want, image)
	}
	if n := strings.Count(image, "% { transform: translateY("); n != 4 { // three lines, and the end
		t.Errorf("%d movements, want 4", n)
	}
}
