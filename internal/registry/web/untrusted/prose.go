package untrusted

import (
	"html/template"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Prose returns a description as paragraphs. The lines of a paragraph are joined, except for the items of a list and
// indented lines. Addresses that are complete and start with https become links; one that a line break has split is
// joined before.
func Prose(description string) template.HTML {
	var out, lines []string
	end := func() {
		for i := range lines {
			lines[i] = linked(lines[i])
		}
		if len(lines) > 0 {
			out = append(out, "<p>"+strings.Join(lines, "<br>")+"</p>")
		}
		lines = nil
	}
	for line := range strings.SplitSeq(description, "\n") {
		text := strings.TrimSpace(line)
		last := len(lines) - 1
		switch {
		case text == "":
			end()
		case last < 0 || wording.StartsItem(text) || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"):
			lines = append(lines, text)
		case continues(lines[last], text):
			lines[last] += text
		default:
			lines[last] += " " + text
		}
	}
	end()
	return template.HTML(strings.Join(out, "")) //nolint:gosec // linked escapes all text
}

// lastWord returns the last word of a line.
func lastWord(line string) string {
	return line[strings.LastIndexFunc(line, unicode.IsSpace)+1:]
}

// continues reports whether a line starts with the rest of an address at the end of the line before.
func continues(before, line string) bool {
	next, _, _ := strings.Cut(line, " ")
	if !strings.Contains(lastWord(before), "https://") || strings.Contains(next, "://") {
		return false
	}
	end := before[len(before)-1:]
	return isIncomplete(before) ||
		strings.Contains("/?_", end) && strings.ContainsAny(strings.TrimRight(next, ".,;:!?)"), "./-_#=")
}

// isIncomplete reports whether an address ends with a character after which another one must follow.
func isIncomplete(address string) bool {
	return strings.HasSuffix(address, "://") || strings.Contains("-=&%#", address[len(address)-1:])
}

var httpsAddress = lazyregexp.New("https://[^\\s<>\"'`]+")

// linked returns a line as HTML with links.
func linked(line string) string {
	var out strings.Builder
	done := 0
	for _, at := range httpsAddress().FindAllStringIndex(line, -1) {
		end := at[0] + len(withoutPunctuation(line[at[0]:at[1]]))
		former, _ := utf8.DecodeLastRuneInString(line[:at[0]])
		if strings.HasPrefix(line[at[1]:], "<") || unicode.IsLetter(former) || unicode.IsDigit(former) ||
			!isWhole(line[at[0]:end]) {
			continue
		}
		target := template.HTMLEscapeString(line[at[0]:end])
		out.WriteString(template.HTMLEscapeString(line[done:at[0]]) + `<a href="` + target + `" rel="` + Rel + `">` + target +
			`</a>`)
		done = end
	}
	return out.String() + template.HTMLEscapeString(line[done:])
}

// withoutPunctuation returns an address without the punctuation of the sentence around it.
func withoutPunctuation(address string) string {
	for {
		last := address[len(address)-1:]
		switch {
		case strings.Contains(".,;:!?*", last) && !strings.HasSuffix(address, "..."):
		case last == ")" && strings.Count(address, ")") > strings.Count(address, "("):
		case last == "]" && strings.Count(address, "]") > strings.Count(address, "["):
		default:
			return address
		}
		address = address[:len(address)-1]
	}
}

var domain = lazyregexp.New(`^([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?\.)+[a-zA-Z]{2,}(:[0-9]+)?$`)

// isWhole reports whether an address has a host with a domain, no placeholder, and is not cut off.
func isWhole(address string) bool {
	u, err := url.Parse(address)
	return err == nil && Link(address) != "" && domain().MatchString(u.Host) && !isIncomplete(address) &&
		!strings.ContainsAny(address, "{}$*|^[]…\\") && !strings.HasSuffix(address, "...")
}
