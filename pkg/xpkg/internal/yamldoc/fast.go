package yamldoc

import (
	"bytes"
	"slices"
	"sync"
)

// fast converts common YAML directly to canonical JSON: block mappings and sequences, all
// styles of scalars, and simple flow collections. If the general reader might interpret
// the text differently, fast gives up and the general reader is used. It must be correct,
// but need not be complete. A differential fuzz test compares both.
//
// Positions: between two nodes, pos is on the first character of the next content line
// and col is its column; col is -1 at the end of the text. Inside a line, only pos is
// valid.
type fast struct {
	src     []byte // LF line ends only, the last line included
	pos     int
	col     int
	out     []byte
	fields  []field
	scratch []byte
	nodes   int
	depth   int
	limits  *Limits
	fault   *Fault
}

// field is a field of a mapping that is being written: its key and its place in the
// output.
type field struct {
	key        []byte
	start, end int
}

// fastPool keeps the buffers of finished readers.
var fastPool = sync.Pool{New: func() any { return new(fast) }}

// fastJSON reads a document that has passed checkEncoding. If ok is false, the general
// reader must be used; a fault is an exceeded limit in either case.
func fastJSON(raw []byte, limits *Limits) (json []byte, f *Fault, ok bool) {
	s := fastPool.Get().(*fast)
	defer fastPool.Put(s)
	*s = fast{src: raw, limits: limits, out: s.out[:0], fields: s.fields[:0], scratch: s.scratch[:0]}
	ok = s.document()
	s.src = nil
	if s.fault != nil {
		return nil, s.fault, false
	}
	if !ok {
		return nil, nil, false
	}
	return bytes.Clone(s.out), nil, true
}

// document reads the collection that forms a document.
func (s *fast) document() bool {
	if len(s.src) == 0 || s.src[len(s.src)-1] != '\n' {
		return false
	}
	if first, _ := CutLine(s.src); IsMarker(first, "---") {
		if !IsComment(first[3:]) {
			return false
		}
		s.pos = len(first)
	}
	if !s.next() || s.col < 0 {
		return false
	}
	switch c := s.src[s.pos]; {
	case c == '{' || c == '[':
		if !s.flow() || !s.endLine() || !s.next() {
			return false
		}
	case s.atDash():
		if !s.sequence(s.col) {
			return false
		}
	default:
		if !s.mapping(s.col) {
			return false
		}
	}
	return s.col < 0
}

// next moves from the start of a line to the next content.
func (s *fast) next() bool {
	for s.pos < len(s.src) {
		start := s.pos
		for s.src[s.pos] == ' ' {
			s.pos++
		}
		switch s.src[s.pos] {
		case '\n':
			s.pos++
			continue
		case '#':
			s.skipLine()
			continue
		case '\t':
			return false
		}
		s.col = s.pos - start
		return s.col > 0 || !IsMarker(s.src[s.pos:], "---") && !IsMarker(s.src[s.pos:], "...")
	}
	s.col = -1
	return true
}

// skipLine moves to the start of the next line.
func (s *fast) skipLine() {
	s.pos += bytes.IndexByte(s.src[s.pos:], '\n') + 1
}

// endLine moves from the end of a value to the start of the next line, and skips only
// space and a comment.
func (s *fast) endLine() bool {
	start := s.pos
	s.skipSpaces()
	switch {
	case s.src[s.pos] == '\n':
		s.pos++
	case s.src[s.pos] == '#' && s.pos > start:
		s.skipLine()
	default:
		return false
	}
	return true
}

func (s *fast) skipSpaces() {
	for s.src[s.pos] == ' ' {
		s.pos++
	}
}

// atDash reports whether pos is on the indicator of a sequence element.
func (s *fast) atDash() bool {
	return s.src[s.pos] == '-' && (s.src[s.pos+1] == ' ' || s.src[s.pos+1] == '\n')
}

// node counts a key or value.
func (s *fast) node() bool {
	if s.nodes++; s.nodes > s.limits.Nodes {
		return s.exceed(&s.limits.Nodes)
	}
	return true
}

// enter starts a collection inside the current one; leave ends it.
func (s *fast) enter() bool {
	if s.depth++; s.depth > s.limits.Depth {
		return s.exceed(&s.limits.Depth)
	}
	return s.node()
}

func (s *fast) leave() { s.depth-- }

// exceed records that a limit is exceeded at pos, and returns false.
func (s *fast) exceed(limit *int) bool {
	s.fault = s.limits.exceeds(limit, 1+bytes.Count(s.src[:s.pos], []byte{'\n'}))
	return false
}

// fits reports whether a string that starts at an offset is within the limit.
func (s *fast) fits(text []byte, start int) bool {
	if len(text) > s.limits.ScalarBytes {
		s.pos = start
		return s.exceed(&s.limits.ScalarBytes)
	}
	return true
}

// order sorts the fields of a mapping, from base on, by key. It returns false if a key
// occurs twice.
func (s *fast) order(base int) bool {
	fields := s.fields[base:]
	start := fields[0].start
	slices.SortFunc(fields, func(a, b field) int { return bytes.Compare(a.key, b.key) })
	s.scratch = s.scratch[:0]
	for i, f := range fields {
		if i > 0 {
			if bytes.Equal(f.key, fields[i-1].key) {
				return false
			}
			s.scratch = append(s.scratch, ',')
		}
		s.scratch = append(s.scratch, s.out[f.start:f.end]...)
	}
	s.out = append(s.out[:start], s.scratch...)
	return true
}
