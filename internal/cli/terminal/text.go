package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Safe makes untrusted text safe to print on a terminal: it escapes [wording.Invisible]
// characters, as Go and YAML do, and hides credentials in references.
func Safe(s string) string {
	return Escape(errcode.HideCredentials(s), wording.Invisible, EscapeHigh)
}

// EscapeHigh returns the escaped form of a character above U+FFFF.
func EscapeHigh(r rune) string { return fmt.Sprintf("\\U%08x", r) }

// Escape replaces characters of a text. Characters above U+FFFF have a separate form.
func Escape(s string, unsafe func(rune) bool, high func(rune) string) string {
	if !strings.ContainsFunc(s, unsafe) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !unsafe(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(high(r))
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// SafeLine is like Safe, and replaces line ends by spaces, so that untrusted text cannot add lines to an output.
func SafeLine(s string) string { return strings.ReplaceAll(Safe(s), "\n", " ") }

// SafeText is like Safe, but keeps tabs, for text in columns.
func SafeText(s string) string {
	if !strings.ContainsFunc(s, wording.Invisible) {
		return errcode.HideCredentials(s)
	}
	columns := strings.Split(s, "\t")
	for i, column := range columns {
		columns[i] = Safe(column)
	}
	return strings.Join(columns, "\t")
}

// EscapeMarkdown escapes characters with a meaning in Markdown or HTML, and mentions of users. Commands in back-ticks
// stay code.
func EscapeMarkdown(s string) string {
	parts := strings.Split(s, "`")
	if len(parts)%2 == 0 || strings.Contains(s, "``") { // Not each back-tick begins or ends code.
		return escapeMarkdown(strings.ReplaceAll(s, "`", "'"))
	}
	for i, part := range parts {
		if i%2 == 0 {
			parts[i] = escapeMarkdown(part)
		} else {
			parts[i] = strings.ReplaceAll(part, "|", `\|`) // It ends the cell of a table also within code.
		}
	}
	return strings.Join(parts, "`")
}

// escapeMarkdown is like EscapeMarkdown for a text without code.
func escapeMarkdown(s string) string {
	s = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`).
		Replace(s)
	return mention().ReplaceAllString(s, "$1@<!-- -->$2")
}

// mention matches an at sign that can begin the name of a user or a team, which a forge would notify.
var mention = lazyregexp.New(`(^|[^0-9A-Za-z])@([0-9A-Za-z])`)

// Age returns the time since an event in the largest suitable unit: 42s, 5m, 3h, 12d.
func Age(since, now time.Time) string {
	d := now.Sub(since)
	switch {
	case since.IsZero():
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Size returns a number of bytes for display, such as 64 MiB.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
