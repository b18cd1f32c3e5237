package yamldoc

import (
	"bytes"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrUnsupportedYAML is the code for well-formed YAML that cannot be represented in JSON.
var ErrUnsupportedYAML = errcode.Code{
	Name: "UnsupportedYAML", Class: errcode.Invalid,
	Cause: "A document uses YAML that has no single meaning in JSON: a directive, a tag, a merge key, a key or number that JSON does not have.",
	Fix:   "Write the value out in plain YAML.",
}

// A Document is one YAML document of a stream.
type Document struct {
	// Line is the line of the stream on which Raw begins, from 1.
	Line int
	// Raw is the source text, with a line end after the last line.
	Raw []byte
}

// Split splits a stream into its documents, without parsing them (YAML 1.2.2, section 9).
// Documents that contain only space and comments are omitted. A separator line that
// contains more than the separator belongs to the document that it starts, so that a
// comment on it is kept.
//
// A fault has the code ErrStreamTooLarge or ErrYAMLLimit for an exceeded limit,
// ErrInvalidEncoding for UTF-16 and UTF-32, ErrUnsupportedYAML for a directive, and
// ErrInvalidYAML for text after the end of a document.
func (r *Reader) Split(stream []byte) ([]Document, *Fault) {
	if len(stream) > r.limits.StreamBytes {
		return nil, Exceeded(ErrStreamTooLarge, r.limits.Fields()[0], 0)
	}
	text, f := trimBOM(stream)
	if f != nil {
		return nil, f
	}
	s := newSplitter(&r.limits)
	if f := s.run(text, true); f != nil {
		return nil, f
	}
	return s.docs, nil
}

func newSplitter(limits *Limits) *splitter { return &splitter{limits: limits, line: 1, started: 1} }

type splitter struct {
	limits *Limits
	text   []byte
	docs   []Document

	seen    int  // number of documents, including empty ones
	start   int  // offset of the current document
	started int  // its line
	content bool // whether the current document has content
	ended   bool // whether the document before the next marker has been ended
	line    int
}

// run scans the lines of a part of a stream. The next part, if there is one, begins with a marker. A marker at the
// start of a line is always a marker: YAML forbids it inside scalars.
func (s *splitter) run(part []byte, last bool) *Fault {
	s.text, s.start, s.docs = part, 0, nil
	for at := 0; at < len(s.text); s.line++ {
		at = s.skipMarks(at)
		first, rest := CutLine(s.text[at:])
		if len(first) == 0 {
			break
		}
		next := len(s.text) - len(rest)
		switch {
		case IsMarker(first, "---"):
			if !s.ended {
				if f := s.end(at); f != nil {
					return f
				}
			}
			s.ended = false
			s.begin(at, next, first)
		case IsMarker(first, "..."):
			if tail := first[3:]; !IsComment(tail) {
				return &Fault{Code: ErrInvalidYAML, Line: s.line, What: `text after the end of a document ("...")`}
			}
			if f := s.end(at); f != nil {
				return f
			}
			s.start, s.started = next, s.line+1
		case !s.content && first[0] == '%':
			return &Fault{
				Code: ErrUnsupportedYAML, Line: s.line, What: fmt.Sprintf("YAML directive %.40q", bytes.TrimSpace(first)),
			}
		default:
			s.content = s.content || !IsComment(first)
		}
		at = next
	}
	s.ended = !last
	return s.end(len(s.text))
}

// skipMarks moves past byte order marks at the start of a document, where YAML allows
// them: concatenated files can each have one.
func (s *splitter) skipMarks(at int) int {
	for at == s.start && bytes.HasPrefix(s.text[at:], utf8BOM) {
		at += len(utf8BOM)
		s.start = at
	}
	return at
}

// begin starts a document at a marker line. The line is part of the document only if it
// contains more than the marker.
func (s *splitter) begin(at, next int, marker []byte) {
	s.start, s.started = next, s.line+1
	if tail := bytes.TrimSpace(marker[3:]); len(tail) > 0 {
		s.start, s.started = at, s.line
		s.content = !IsComment(tail)
	}
}

// end closes the current document before the offset end.
func (s *splitter) end(end int) *Fault {
	raw := s.text[s.start:end:end]
	content := s.content
	s.content = false
	if s.seen++; s.seen > s.limits.Documents {
		return s.limits.exceeds(&s.limits.Documents, s.line)
	}
	if !content {
		return nil
	}
	if len(raw) > s.limits.DocumentBytes {
		return s.limits.exceeds(&s.limits.DocumentBytes, s.started)
	}
	if raw[len(raw)-1] != '\n' {
		raw = append(raw, '\n')
	}
	s.docs = append(s.docs, Document{Line: s.started, Raw: raw})
	return nil
}

// CutLine returns the first line of text with its line end, and the rest.
func CutLine(text []byte) (line, rest []byte) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, nil
}

// IsMarker reports whether a line is a document marker: the three characters, followed by
// space or the end of the line.
func IsMarker(line []byte, marker string) bool {
	if len(line) < 3 || string(line[:3]) != marker {
		return false
	}
	return len(line) == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\n' || line[3] == '\r'
}

// IsComment reports whether a line is empty or only contains a comment.
func IsComment(line []byte) bool {
	for _, c := range line {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '#'
		}
	}
	return true
}
