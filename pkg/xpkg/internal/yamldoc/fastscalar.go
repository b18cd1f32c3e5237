package yamldoc

import "bytes"

// startsPlain reports whether the character at pos can start an unquoted scalar in a
// block collection.
func (s *fast) startsPlain() bool {
	switch c := s.src[s.pos]; c {
	case '-', '?', ':':
		next := s.src[s.pos+1]
		return next != ' ' && next != '\n' && next != '\t'
	case ' ', '\t', '\n', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`':
		return false
	}
	return true
}

// plainEnd returns the end of a plain scalar on this line: at the colon of a key, at the
// space before a comment, or at the line end. It returns false for a tab, because readers
// treat tabs differently.
func (s *fast) plainEnd(from int) (end int, ok bool) {
	for i := from; ; i++ {
		switch s.src[i] {
		case '\n':
			return i, true
		case '\t':
			return i, false
		case ':':
			if next := s.src[i+1]; next == ' ' || next == '\n' {
				return i, true
			} else if next == '\t' {
				return i, false
			}
		case '#':
			if i > from && s.src[i-1] == ' ' {
				return i - 1, true
			}
		}
	}
}

// plain reads a plain scalar inside a collection in the column.
func (s *fast) plain(col int) bool {
	if !s.startsPlain() {
		return false
	}
	start := s.pos
	end, ok := s.plainEnd(start)
	if !ok || s.src[end] == ':' {
		return false
	}
	text := bytes.TrimRight(s.src[start:end], " ")
	s.pos = end
	if s.src[end] == '\n' {
		if text, ok = s.continued(text, col); !ok {
			return false
		}
	} else {
		s.skipLine()
	}
	if !s.fits(text, start) {
		return false
	}
	if s.out, ok = appendPlain(s.out, text); !ok {
		return false
	}
	return s.next()
}

// continued reads the further lines of a plain scalar, from the end of its first:
// lines deeper than the column, folded together. It leaves pos at the start of the
// line after them.
func (s *fast) continued(text []byte, col int) ([]byte, bool) {
	joined := false
	for {
		line, breaks := s.nextNonBlank(s.pos + 1)
		content := line
		for content < len(s.src) && s.src[content] == ' ' {
			content++
		}
		if content == len(s.src) || content-line <= col || s.src[content] == '#' {
			s.pos++
			return text, true
		}
		end, ok := s.plainEnd(content)
		if !ok || s.src[end] == ':' {
			return nil, false
		}
		if !joined {
			text = append(s.scratch[:0], text...)
			joined = true
		}
		text = appendBreaks(text, breaks)
		text = append(text, bytes.TrimRight(s.src[content:end], " ")...)
		s.scratch = text
		s.pos = end
		if s.src[end] != '\n' { // a comment ends the scalar
			s.skipLine()
			return text, true
		}
	}
}

// nextNonBlank returns the start of the first nonblank line at or after pos, and the
// number of blank lines before it.
func (s *fast) nextNonBlank(pos int) (line, blank int) {
	for line = pos; line < len(s.src); blank++ {
		i := line
		for s.src[i] == ' ' {
			i++
		}
		if s.src[i] != '\n' {
			break
		}
		line = i + 1
	}
	return line, blank
}

// appendBreaks folds a line break and the blank lines after it.
func appendBreaks(text []byte, blank int) []byte {
	if blank == 0 {
		return append(text, ' ')
	}
	for range blank {
		text = append(text, '\n')
	}
	return text
}

// blockScalar reads a literal or folded scalar inside a collection in the column.
func (s *fast) blockScalar(col int) bool {
	start, folded := s.pos, s.src[s.pos] == '>'
	chomp, indent, ok := s.blockHeader(col)
	if !ok {
		return false
	}
	if indent == 0 {
		if indent, ok = s.blockIndent(col); !ok {
			return false
		}
	}
	text, breaks, ok := s.blockLines(indent, folded)
	if !ok {
		return false
	}
	if len(text) > 0 && text[len(text)-1] == '\n' && chomp == '-' {
		text = text[:len(text)-1]
	}
	if chomp == '+' {
		for range breaks {
			text = append(text, '\n')
		}
	}
	s.scratch = text
	return s.text(text, start) && s.next()
}

// blockHeader reads the indicators of a block scalar and moves to the next line. The
// indent is 0 if the header does not specify it.
func (s *fast) blockHeader(col int) (chomp byte, indent int, ok bool) {
	for s.pos++; ; s.pos++ {
		switch c := s.src[s.pos]; {
		case (c == '-' || c == '+') && chomp == 0:
			chomp = c
		case c >= '1' && c <= '9' && indent == 0:
			indent = col + int(c-'0')
		default:
			return chomp, indent, s.endLine()
		}
	}
}

// blockIndent returns the indent of a block scalar from its first line with content. It
// returns false for a tab in the indent, and for a preceding blank line that is deeper,
// because readers disagree about it.
func (s *fast) blockIndent(col int) (int, bool) {
	line, _ := s.nextNonBlank(s.pos)
	content := line
	for content < len(s.src) && s.src[content] == ' ' {
		content++
	}
	if content < len(s.src) && s.src[content] == '\t' {
		return 0, false
	}
	indent := max(content-line, col+1)
	for blank := s.pos; blank < line; {
		end := blank + bytes.IndexByte(s.src[blank:], '\n')
		if end-blank > indent || end-blank > content-line {
			return 0, false
		}
		blank = end + 1
	}
	return indent, true
}

// blockLines reads the lines of a block scalar into the buffer: its text with one line
// end at the end, and the number of blank lines after it.
func (s *fast) blockLines(indent int, folded bool) (text []byte, breaks int, ok bool) {
	text = s.scratch[:0]
	first, wasDeep := true, false
	for s.pos < len(s.src) {
		line := s.src[s.pos:]
		spaces := 0
		for spaces < indent && line[spaces] == ' ' {
			spaces++
		}
		if spaces < indent {
			if line[spaces] == '\t' {
				return nil, 0, false
			}
			if line[spaces] != '\n' {
				break
			}
		}
		if line[spaces] == '\n' {
			breaks++
			s.pos += spaces + 1
			continue
		}
		line, _ = CutLine(line[spaces:])
		deep := line[0] == ' ' || line[0] == '\t'
		if !first && folded && !deep && !wasDeep {
			text = text[:len(text)-1]
			if breaks == 0 {
				text = append(text, ' ')
			}
		}
		for range breaks {
			text = append(text, '\n')
		}
		text = append(text, line...)
		first, wasDeep, breaks = false, deep, 0
		s.pos += spaces + len(line)
	}
	return text, breaks, true
}
