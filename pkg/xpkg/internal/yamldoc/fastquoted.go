package yamldoc

import (
	"bytes"
	"unicode/utf8"
)

// quoted reads a quoted scalar. The result can be in a buffer that is reused.
func (s *fast) quoted() ([]byte, bool) {
	quote := s.src[s.pos]
	rest := s.src[s.pos+1:]
	end := bytes.IndexByte(rest, quote)
	if end < 0 {
		return nil, false
	}
	simple := rest[:end]
	again := quote == '\'' && rest[end+1] == '\'' // an escaped quote
	if !again && bytes.IndexByte(simple, '\n') < 0 && (quote == '\'' || bytes.IndexByte(simple, '\\') < 0) {
		s.pos += end + 2
		return simple, true
	}
	s.pos++
	text, ok := s.quotedText(quote)
	s.scratch = text
	return text, ok
}

// quotedText reads a quoted scalar with escapes or line breaks, from after the first
// quote to after the last.
func (s *fast) quotedText(quote byte) ([]byte, bool) {
	text := s.scratch[:0]
	solid := 0 // length of the text without space that a line break removes
	for s.pos < len(s.src) {
		c := s.src[s.pos]
		switch {
		case c == quote && quote == '\'' && s.src[s.pos+1] == '\'':
			text = append(text, quote)
			s.pos += 2
		case c == quote:
			s.pos++
			return text, true
		case c == '\n':
			blank, ok := s.fold()
			if !ok {
				return nil, false
			}
			text = appendBreaks(text[:solid], blank)
		case c == '\\' && quote == '"':
			var ok bool
			if text, ok = s.escape(text); !ok {
				return nil, false
			}
		default:
			text = append(text, c)
			s.pos++
			if c == ' ' || c == '\t' {
				continue
			}
		}
		solid = len(text)
	}
	return nil, false
}

// fold moves from a line break inside quotes to the next text and returns the number of
// blank lines in between.
func (s *fast) fold() (blank int, ok bool) {
	for blank = -1; s.pos < len(s.src) && s.src[s.pos] == '\n'; blank++ {
		s.pos++
		if IsMarker(s.src[s.pos:], "---") || IsMarker(s.src[s.pos:], "...") {
			return 0, false
		}
		for s.pos < len(s.src) && (s.src[s.pos] == ' ' || s.src[s.pos] == '\t') {
			s.pos++
		}
	}
	return blank, s.pos < len(s.src)
}

// escapes maps the short escapes to their characters.
var escapes = [256]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b",
	' ': " ", '"': `"`, '\'': "'", '\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

// escape reads an escape sequence in double quotes.
func (s *fast) escape(text []byte) ([]byte, bool) {
	c := s.src[s.pos+1]
	switch c {
	case 'x':
		return s.hexEscape(text, 2)
	case 'u':
		return s.hexEscape(text, 4)
	case 'U':
		return s.hexEscape(text, 8)
	case '\n':
		return text, s.escapedBreak()
	}
	if escapes[c] == "" {
		return nil, false
	}
	s.pos += 2
	return append(text, escapes[c]...), true
}

// escapedBreak skips an escaped line break and the space after it.
func (s *fast) escapedBreak() bool {
	s.pos++
	blank, ok := s.fold()
	return ok && blank == 0
}

func (s *fast) hexEscape(text []byte, digits int) ([]byte, bool) {
	from := s.pos + 2
	if from+digits > len(s.src) {
		return nil, false
	}
	var r rune
	for _, c := range s.src[from : from+digits] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return nil, false
		}
	}
	if !utf8.ValidRune(r) {
		return nil, false
	}
	s.pos = from + digits
	return utf8.AppendRune(text, r), true
}
