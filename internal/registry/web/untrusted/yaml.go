package untrusted

import (
	"html/template"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// maxHighlighted is the maximum size of YAML with colors.
const maxHighlighted = 128 << 10

var (
	yamlLine  = lazyregexp.New(`^(\s*(?:- +)*)([^\s#'"{}\[\]][^#:]*|"[^"]*"|'[^']*')(:)( .*|)$`)
	yamlItem  = lazyregexp.New(`^(\s*(?:- +)+)(.*)$`)
	yamlValue = lazyregexp.New(`^(-?[0-9][0-9.]*|true|false|null|~)$`)
)

// YAML returns YAML as HTML with classes for keys (k), strings (s), other values (n) and comments (c).
func YAML(source string) template.HTML {
	var out strings.Builder
	if len(source) > maxHighlighted {
		return template.HTML(template.HTMLEscapeString(source)) //nolint:gosec // the text is escaped
	}
	for line := range strings.Lines(source) {
		text := strings.TrimRight(line, "\r\n")
		writeLine(&out, text)
		if text != line {
			out.WriteByte('\n')
		}
	}
	return template.HTML(out.String()) //nolint:gosec // writeLine escapes all text
}

func writeLine(out *strings.Builder, line string) {
	switch m := yamlLine().FindStringSubmatch(line); {
	case strings.HasPrefix(strings.TrimSpace(line), "#"), line == "---":
		span(out, "c", line)
	case m != nil:
		out.WriteString(m[1])
		span(out, "k", m[2])
		out.WriteString(m[3])
		writeValue(out, m[4])
	default:
		if m := yamlItem().FindStringSubmatch(line); m != nil {
			out.WriteString(m[1])
			line = m[2]
		}
		writeValue(out, line)
	}
}

// writeValue writes a value with its leading space and trailing comment.
func writeValue(out *strings.Builder, value string) {
	trimmed := strings.TrimLeft(value, " ")
	out.WriteString(value[:len(value)-len(trimmed)])
	comment := ""
	if i := strings.Index(trimmed, " #"); i >= 0 && !strings.ContainsAny(trimmed[:i], `"'`) {
		trimmed, comment = trimmed[:i], trimmed[i:]
	}
	class := "s"
	if yamlValue().MatchString(trimmed) {
		class = "n"
	}
	span(out, class, trimmed)
	span(out, "c", comment)
}

func span(out *strings.Builder, class, text string) {
	if text != "" {
		out.WriteString(`<span class="` + class + `">` + template.HTMLEscapeString(text) + `</span>`)
	}
}
