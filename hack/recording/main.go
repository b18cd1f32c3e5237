// Command recording writes an animated SVG image of a terminal session: each line of its input appears at the time at
// which it was read. The image ends with the last lines.
package main

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
)

func main() {
	lines, err := read(io.TeeReader(os.Stdin, os.Stderr), time.Now)
	if err == nil {
		err = render(os.Stdout, lines)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	// columns and rows are the size of the terminal.
	columns, rows = 132, 32
	// longestPause is the longest time between two lines, and commandPause the time after which a command appears.
	longestPause, commandPause = 1500 * time.Millisecond, 700 * time.Millisecond
	// The sizes of the image in pixels. A character is 8.43 pixels wide.
	lineHeight, margin, lineWidth = 18, 16, columns * 843 / 100
)

// line is a line of the terminal with the time at which it appears.
type line struct {
	text    string
	at      time.Duration
	command bool
}

// read returns the lines of a session. Long lines are wrapped, and control characters are dropped.
func read(r io.Reader, now func() time.Time) ([]line, error) {
	var out []line
	var at time.Duration
	last := now()
	for s := bufio.NewScanner(r); ; {
		if !s.Scan() {
			return out, s.Err()
		}
		text, command := s.Text(), strings.HasPrefix(s.Text(), "$ ")
		moment := now()
		at += min(moment.Sub(last), longestPause)
		if command {
			at += commandPause
		}
		last = moment
		for _, part := range wrap(text) {
			out = append(out, line{part, at, command})
		}
	}
}

// wrap returns the lines of a terminal for a line of text.
func wrap(text string) []string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return -1
		}
		return r
	}, text)
	all := []rune(strings.ReplaceAll(text, "\t", "    "))
	var out []string
	for len(all) > columns {
		out = append(out, string(all[:columns]))
		all = all[columns:]
	}
	return append(out, string(all))
}

// style is the style of the image. Without animations, all lines are visible.
const style = `text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d0d7de; white-space: pre; animation: appear 1ms both; }
.c { fill: #7ee787; font-weight: 600; }
@keyframes appear { from { opacity: 0; } to { opacity: 1; } }
`

// render writes the image of a session.
func render(w io.Writer, lines []line) error {
	out := bufio.NewWriter(w)
	width, height := lineWidth+2*margin, rows*lineHeight+2*margin
	fmt.Fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"A terminal session\">\n<style>\n%s",
		width, height, width, height, style)
	scroll(out, lines)
	fmt.Fprintf(out, "</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n")
	fmt.Fprintf(
		out, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><g id=\"s\">\n", margin, margin, width-2*margin,
		rows*lineHeight,
	)
	for i, l := range lines {
		if l.text == "" {
			continue
		}
		class := ""
		if l.command {
			class = ` class="c"`
		}
		fmt.Fprintf(out, "<text%s y=\"%d\" style=\"animation-delay:%.2fs\">", class, (i+1)*lineHeight-4, l.at.Seconds())
		if err := xml.EscapeText(out, []byte(l.text)); err != nil {
			return err
		}
		fmt.Fprint(out, "</text>\n")
	}
	fmt.Fprint(out, "</g></svg>\n</svg>\n")
	return out.Flush()
}

// scroll writes the style that moves the lines up when the terminal is full.
func scroll(w io.Writer, lines []line) {
	end := offset(len(lines))
	if end == 0 {
		return
	}
	total := lines[len(lines)-1].at.Seconds() + 1
	fmt.Fprintf(w, "#s { animation: scroll %.2fs step-end both; }\n@keyframes scroll {\n0%% { transform: none; }\n", total)
	for i := range lines {
		// Lines that appear at once move at once.
		if moves := offset(i + 1); moves > 0 && (i+1 == len(lines) || lines[i+1].at != lines[i].at) {
			fmt.Fprintf(w, "%.3f%% { transform: translateY(-%dpx); }\n", 100*lines[i].at.Seconds()/total, moves)
		}
	}
	fmt.Fprintf(w, "100%% { transform: translateY(-%dpx); }\n}\n", end)
	fmt.Fprintf(
		w,
		"@media (prefers-reduced-motion: reduce) { text { animation: none; } #s { animation: none; transform: translateY(-%dpx); } }\n",
		end,
	)
}

// offset returns the number of pixels by which the first of n lines has moved up.
func offset(n int) int { return max(0, n-rows) * lineHeight }
