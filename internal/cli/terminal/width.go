package terminal

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

const ellipsis = "…"

// Cells returns the width of a text in cells of a terminal. Characters of Chinese, Japanese and Korean text take two,
// and combining ones none.
func Cells(s string) int {
	n := 0
	for _, r := range s {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// Split splits a text after as many characters as fit in a number of cells.
func Split(s string, limit int) (first, rest string) {
	for i, r := range s {
		if limit -= cellsOf(r); limit < 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// Clip returns the beginning of a text that fits in a number of cells, with an ellipsis if it is not the whole text.
func Clip(s string, limit int) string {
	if Cells(s) <= limit {
		return s
	}
	first, _ := Split(s, limit-1)
	return first + ellipsis
}

// ClipMiddle is like Clip, but keeps the end of a text, such as the name and the tag of a reference, and less of its
// beginning.
func ClipMiddle(s string, limit int) string {
	if Cells(s) <= limit {
		return s
	}
	first, rest := Split(s, (limit-1)/3)
	for room := limit - 1 - Cells(first); Cells(rest) > room; {
		_, rest = Split(rest, max(1, cellsOf([]rune(rest)[0])))
	}
	return first + ellipsis + rest
}

// longDigest matches a digest, with the digits of a short digest as its first group.
var longDigest = lazyregexp.New(`\b(sha256:[0-9a-f]{12})[0-9a-f]{52}\b`)

// ShortenDigests returns a text with short digests, which end with an ellipsis.
func ShortenDigests(s string) string { return longDigest().ReplaceAllString(s, "${1}"+ellipsis) }

// Wrap returns a text with line breaks, so that its lines fit in a number of columns. It shortens the digests in long
// lines. It breaks neither words nor commands in backquotes, which users copy: such a line can be longer.
func Wrap(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		b.WriteString(wrapLine(line, columns))
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// commandLine matches a line with a command that a user copies.
var commandLine = lazyregexp.New(`^ {2,}(xpkg|kubectl|docker|helm|export) [^A-Z]`)

// wrapLine wraps a line. The further lines are indented more than the first, and continue its tree.
func wrapLine(line string, columns int) string {
	if Cells(line) <= columns || commandLine().MatchString(line) {
		return line
	}
	prefix := line[:len(line)-len(strings.TrimLeft(line, " │├└─"))]
	hang := strings.NewReplacer("├", "│", "└", " ", "─", " ").Replace(prefix) + "  "
	if Cells(hang) > columns/2 {
		hang = "  "
	}
	return prefix + strings.Join(fill(line[len(prefix):], columns-Cells(prefix), columns-Cells(hang)), "\n"+hang)
}

// word matches a word, or a command in backquotes, with the spaces before it.
var word = lazyregexp.New("( *)([^ `]*(?:`[^`\n]*`)[^ `]*|[^ ]+)")

// Fill returns a text as lines that fit in a number of columns.
func Fill(text string, columns int) []string { return fill(text, columns, columns) }

// fill returns a text as lines, of which the first one can have another width.
func fill(text string, first, others int) []string {
	var lines []string
	line, room := "", first
	for _, m := range word().FindAllStringSubmatch(text, -1) {
		space, word := m[1], m[2]
		if !strings.Contains(word, "`") {
			word = ShortenDigests(word)
		}
		if line != "" && Cells(line+space+word) > room {
			lines, line, room = append(lines, line), "", others
			space = ""
		}
		line += space + word
	}
	return append(lines, line)
}
