package yamldoc

import (
	"bytes"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
)

// maxKey is the maximum number of characters from the start of a key to its colon. The
// general reader does not recognize longer keys.
const maxKey = 1000

// mapping reads a block mapping whose keys are in the column.
func (s *fast) mapping(col int) bool {
	if !s.enter() {
		return false
	}
	defer s.leave()
	m := s.openMapping()
	for {
		key, ok := s.key()
		if !ok || !s.openField(&m, key) || !s.fieldValue(col) {
			return false
		}
		s.closeField()
		if s.col != col {
			break
		}
	}
	return s.col < col && s.closeMapping(&m)
}

// mappingState is the state of a mapping that is being written.
type mappingState struct {
	base   int // its first field
	sorted bool
}

func (s *fast) openMapping() mappingState {
	s.out = append(s.out, '{')
	return mappingState{base: len(s.fields), sorted: true}
}

// openField writes a key. It returns false if the key equals the previous one.
func (s *fast) openField(m *mappingState, key []byte) bool {
	if len(s.fields) > m.base {
		s.out = append(s.out, ',')
		switch c := bytes.Compare(s.fields[len(s.fields)-1].key, key); {
		case c == 0:
			return false
		case c > 0:
			m.sorted = false
		}
	}
	s.fields = append(s.fields, field{key: key, start: len(s.out)})
	s.out = canonical.AppendString(s.out, key)
	s.out = append(s.out, ':')
	return s.node()
}

func (s *fast) closeField() {
	s.fields[len(s.fields)-1].end = len(s.out)
}

func (s *fast) closeMapping(m *mappingState) bool {
	if !m.sorted && !s.order(m.base) {
		return false
	}
	s.fields = s.fields[:m.base]
	s.out = append(s.out, '}')
	return true
}

// fieldValue reads the value of a field of a mapping in the column, after the colon.
func (s *fast) fieldValue(col int) bool {
	s.skipSpaces()
	if c := s.src[s.pos]; c != '\n' && c != '#' {
		return s.inline(col)
	}
	s.skipLine()
	if !s.next() {
		return false
	}
	if s.col == col && s.atDash() {
		return s.sequence(col)
	}
	return s.below(col)
}

// below reads the value that starts on a line of its own, deeper than the column. If
// there is no such line, the value is null..
func (s *fast) below(col int) bool {
	switch {
	case s.col <= col:
		return s.null()
	case s.atDash():
		return s.sequence(s.col)
	case s.atKey():
		return s.mapping(s.col)
	}
	return s.inline(col)
}

func (s *fast) null() bool {
	s.out = append(s.out, "null"...)
	return s.node()
}

// sequence reads a block sequence whose dashes are in the column.
func (s *fast) sequence(col int) bool {
	if !s.enter() {
		return false
	}
	defer s.leave()
	s.out = append(s.out, '[')
	for {
		if !s.element(col) {
			return false
		}
		if s.col != col || !s.atDash() {
			break
		}
		s.out = append(s.out, ',')
	}
	s.out = append(s.out, ']')
	return s.col <= col
}

// element reads one element of a sequence, starting at the dash.
func (s *fast) element(col int) bool {
	dash := s.pos
	s.pos++
	s.skipSpaces()
	if c := s.src[s.pos]; c == '\n' || c == '#' {
		s.skipLine()
		return s.next() && s.below(col)
	}
	// The element after the dash has the column that it would have on a line of its own.
	s.col = col + s.pos - dash
	return s.below(col)
}

// inline reads a scalar or a flow collection inside a collection in the column.
func (s *fast) inline(col int) bool {
	if c := s.src[s.pos]; c == '[' || c == '{' {
		return s.flow() && s.endLine() && s.next()
	}
	if !s.node() {
		return false
	}
	switch start := s.pos; s.src[start] {
	case '"', '\'':
		text, ok := s.quoted()
		return ok && s.text(text, start) && s.endLine() && s.next()
	case '|', '>':
		return s.blockScalar(col)
	}
	return s.plain(col)
}

// text writes a string that starts at an offset.
func (s *fast) text(text []byte, start int) bool {
	if !s.fits(text, start) {
		return false
	}
	s.out = canonical.AppendString(s.out, text)
	return true
}

// atKey reports whether there is a key at pos, without moving.
func (s *fast) atKey() bool {
	pos := s.pos
	_, ok := s.key()
	s.pos = pos
	return ok
}

// key reads a key of a block mapping and its colon.
func (s *fast) key() ([]byte, bool) {
	start := s.pos
	if c := s.src[start]; c == '"' || c == '\'' {
		key, ok := s.quotedKey()
		return key, ok && s.colon()
	}
	if !s.startsPlain() {
		return nil, false
	}
	end, ok := s.plainEnd(s.pos)
	if !ok || s.src[end] != ':' || end-start > maxKey {
		return nil, false
	}
	s.pos = end + 1
	return keyOf(bytes.TrimRight(s.src[start:end], " "))
}

// keyOf returns an unquoted key as a string.
func keyOf(text []byte) ([]byte, bool) {
	if string(text) == "<<" {
		return nil, false
	}
	return plainKey(text)
}

// quotedKey reads a quoted key, which must end on its line. It returns a copy, because
// the buffer for strings is reused.
func (s *fast) quotedKey() ([]byte, bool) {
	start := s.pos
	key, ok := s.quoted()
	if !ok || s.pos-start > maxKey || bytes.IndexByte(s.src[start:s.pos], '\n') >= 0 {
		return nil, false
	}
	return bytes.Clone(key), true
}

// colon moves past the colon of a field in a block mapping.
func (s *fast) colon() bool {
	s.skipSpaces()
	if s.src[s.pos] != ':' || s.src[s.pos+1] != ' ' && s.src[s.pos+1] != '\n' {
		return false
	}
	s.pos++
	return true
}
