package terminal

import (
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// ColorMode is the value of the flag --color.
type ColorMode string

// The color modes.
const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// Enabled reports whether the output to w is colored: in the mode auto on a terminal, unless NO_COLOR is set
// (no-color.org).
func (m ColorMode) Enabled(w io.Writer) bool {
	switch m {
	case ColorAlways:
		return true
	case ColorNever:
		return false
	}
	return os.Getenv("NO_COLOR") == "" && IsTerminal(w)
}

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

// highlights are the highlighted parts of the output: the first group of each expression. The text has no control
// characters of packages any more when it is highlighted, so the width of columns does not change.
var highlights = []struct {
	text  func() *regexp.Regexp
	color string
}{
	{lazyregexp.New(`(?m)^(error): `), red},
	{lazyregexp.New(`(?m)^(note): `), yellow},
	{lazyregexp.New(`\b(Healthy=True)\b`), green},
	{lazyregexp.New(`\b(Healthy=False)\b`), red},
	{lazyregexp.New(`\b(Healthy=Unknown)\b`), yellow},
	{lazyregexp.New(`(?m)^[a-z]+/\S+ +(?:True|False|Unknown) +(True)\b`), green},
	{lazyregexp.New(`(?m)^[a-z]+/\S+ +(?:True|False|Unknown) +(False)\b`), red},
	{lazyregexp.New(`(?m)^  (create|\+)  `), green},
	{lazyregexp.New(`(?m)^  (delete|refuse|-)  `), red},
	{lazyregexp.New(`(?m)^  (update|take over|adopt|correct|own|release|approve)  `), yellow},
	{lazyregexp.New(`(?m)^[a-z]+/\S+ (healthy|created|updated|approved|gone|deleted)\b`), green},
}

// highlight returns text with colors.
func highlight(text string) string {
	for _, h := range highlights {
		matches := h.text().FindAllStringSubmatchIndex(text, -1)
		if matches == nil {
			continue
		}
		var b strings.Builder
		from := 0
		for _, m := range matches {
			b.WriteString(text[from:m[2]] + h.color + text[m[2]:m[3]] + reset)
			from = m[3]
		}
		text = b.String() + text[from:]
	}
	return text
}
