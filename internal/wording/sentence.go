package wording

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FirstSentence returns the first sentence of a description on one line of at most most bytes. Line breaks within a
// paragraph are no ends, and neither are the dots of abbreviations, addresses and version numbers. A heading is a
// sentence of its own.
func FirstSentence(description string, most int) string {
	words := strings.Fields(firstParagraph(description))
	for i := range words {
		if i+1 == len(words) || endsSentence(words[i], words[i+1]) {
			words = words[:i+1]
			break
		}
	}
	return ClipWords(strings.Join(words, " "), most)
}

// ClipWords returns a text of at most most bytes. If the text has more, it is cut after a word and ends with an
// ellipsis.
func ClipWords(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	cut := text[:end]
	if !unicode.IsSpace(rune(text[end])) {
		if i := strings.LastIndexFunc(cut, unicode.IsSpace); i > 0 {
			cut = cut[:i]
		}
	}
	return strings.TrimRightFunc(
		cut, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;:-–—([{", r) },
	) + ellipsis
}

// firstParagraph returns the lines before the first empty line, list or heading; or the first heading.
func firstParagraph(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		heading := strings.Trim(line, "# ")
		switch {
		case heading == "" && len(out) == 0:
		case heading == "", len(out) > 0 && (heading != strings.TrimSpace(line) || StartsItem(line)):
			return strings.Join(out, " ")
		case strings.HasPrefix(line, "#"):
			return heading
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, " ")
}

// StartsItem reports whether a line starts an item of a list: with a bullet, or with a number and a dot or parenthesis.
func StartsItem(line string) bool {
	marker, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	number := strings.TrimRight(marker, ".)")
	return slices.Contains([]string{"-", "*", "+", "•"}, marker) ||
		number != marker && len(number) > 0 && len(number) < 3 && strings.Trim(number, "0123456789") == ""
}

// abbreviations end with a dot, and do not end a sentence even if the next word starts with a capital.
var abbreviations = []string{
	"approx", "cf", "co", "corp", "dr", "eg", "fig", "ie", "inc", "incl", "ltd", "mr", "mrs", "ms", "no", "resp", "sec",
	"st", "vs",
}

// endsSentence reports whether a sentence ends with a word, before another one.
func endsSentence(word, next string) bool {
	const opening, closing = "\"'`“‘([{*_", "\"'`”’)]}*_"
	bare := strings.TrimRight(word, closing)
	mark, _ := utf8.DecodeLastRuneInString(bare)
	switch {
	case strings.ContainsRune("。！？", mark):
		return true
	case !strings.ContainsRune(".!?", mark) || strings.HasSuffix(bare, "..."):
		return false
	}
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(next, opening))
	if unicode.IsLower(first) {
		return false
	}
	name := strings.TrimLeft(strings.TrimSuffix(bare, "."), opening)
	return mark != '.' || !slices.Contains(abbreviations, strings.ToLower(name)) && !areInitials(name)
}

// areInitials reports whether a text is an initial, such as "J", or consists of single letters with dots between them,
// such as "e.g".
func areInitials(text string) bool {
	parts := strings.Split(text, ".")
	return !slices.ContainsFunc(parts, func(part string) bool {
		r, size := utf8.DecodeRuneInString(part)
		return size != len(part) || !unicode.IsUpper(r) && (len(parts) == 1 || !unicode.IsLower(r))
	})
}
