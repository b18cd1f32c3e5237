package yamldoc

import "bytes"

// flow reads a flow collection, in which line breaks and columns have no meaning.
func (s *fast) flow() bool {
	if !s.enter() {
		return false
	}
	defer s.leave()
	if s.src[s.pos] == '[' {
		return s.flowSequence()
	}
	return s.flowMapping()
}

func (s *fast) flowSequence() bool {
	s.out = append(s.out, '[')
	s.pos++
	for first := true; ; first = false {
		if !s.flowSpace() {
			return false
		}
		if s.src[s.pos] == ']' {
			return s.closeFlow(']')
		}
		if !first {
			s.out = append(s.out, ',')
		}
		if !s.flowValue() || !s.flowNext(']') {
			return false
		}
	}
}

func (s *fast) flowMapping() bool {
	m := s.openMapping()
	s.pos++
	for {
		if !s.flowSpace() {
			return false
		}
		if s.src[s.pos] == '}' {
			s.pos++
			return s.closeMapping(&m)
		}
		key, ok := s.flowKey()
		if !ok || !s.openField(&m, key) || !s.flowFieldValue() {
			return false
		}
		s.closeField()
		if !s.flowNext('}') {
			return false
		}
	}
}

func (s *fast) closeFlow(end byte) bool {
	s.out = append(s.out, end)
	s.pos++
	return true
}

// flowSpace skips space and line breaks up to the next token.
func (s *fast) flowSpace() bool {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case ' ':
			s.pos++
		case '\n':
			s.pos++
			if IsMarker(s.src[s.pos:], "---") || IsMarker(s.src[s.pos:], "...") {
				return false
			}
		default:
			return true
		}
	}
	return false
}

// flowNext moves past the comma after an element, or to the end of the collection.
func (s *fast) flowNext(end byte) bool {
	if !s.flowSpace() {
		return false
	}
	if s.src[s.pos] == ',' {
		s.pos++
		return true
	}
	return s.src[s.pos] == end
}

func (s *fast) flowValue() bool {
	start := s.pos
	switch s.src[start] {
	case '[', '{':
		return s.flow()
	case '"', '\'':
		text, ok := s.quoted()
		return ok && s.text(text, start) && s.node()
	}
	text, ok := s.flowPlain()
	if !ok || s.src[s.pos] == ':' {
		return false
	}
	if !s.fits(text, start) {
		return false
	}
	s.out, ok = appendPlain(s.out, text)
	return ok && s.node()
}

// flowFieldValue reads the value of a field after the colon.
func (s *fast) flowFieldValue() bool {
	if !s.flowSpace() {
		return false
	}
	if c := s.src[s.pos]; c == ',' || c == '}' {
		return s.null()
	}
	return s.flowValue()
}

// flowKey reads a key and its colon, which must be on the same line.
func (s *fast) flowKey() ([]byte, bool) {
	if c := s.src[s.pos]; c == '"' || c == '\'' {
		key, ok := s.quotedKey()
		if !ok {
			return nil, false
		}
		s.skipSpaces()
		if s.src[s.pos] != ':' {
			return nil, false
		}
		s.pos++
		return key, true
	}
	text, ok := s.flowPlain()
	if !ok || s.src[s.pos] != ':' || len(text) > maxKey {
		return nil, false
	}
	s.pos++
	return keyOf(text)
}

// flowPlain reads a plain scalar on one line, up to the character that ends it.
func (s *fast) flowPlain() ([]byte, bool) {
	start := s.pos
	if c := s.src[start]; c == '?' || c == ':' || !s.startsPlain() {
		return nil, false
	}
	for ; ; s.pos++ {
		switch c := s.src[s.pos]; c {
		case ',', ']', '}', '\n':
			return bytes.TrimRight(s.src[start:s.pos], " "), true
		case ':':
			if next := s.src[s.pos+1]; next != ' ' && next != '\n' {
				return nil, false
			}
			return bytes.TrimRight(s.src[start:s.pos], " "), true
		case '[', '{', '?', '\t', '#':
			return nil, false
		}
	}
}
