package xpkg

import (
	"bytes"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrUnsupportedYAML is the code for YAML that is well-formed but is not the
// plain JSON model that a package may use.
var ErrUnsupportedYAML = errcode.Code{
	Name: "UnsupportedYAML", Class: errcode.Invalid,
	Cause: "A document uses YAML that has no single meaning in JSON: a directive, a tag, a merge key, a key or number that JSON does not have.",
	Fix:   "Write the value out in plain YAML.",
}

// Split cuts a stream into its documents, without a change to their bytes and
// without reading them (YAML 1.2.2, section 9). Documents of nothing but space and
// comments are left out. A separator line that holds more than the separator
// belongs to the document that it starts, so that a comment on it is not lost.
//
// File is the name for messages. Errors are failures: of the class Limit for a
// stream over a limit, and Invalid for UTF-16 and for YAML directives.
func Split(stream []byte, file string, limits Limits) ([]Document, error) {
	docs, f := split(stream, file, newYAMLReader(limits))
	if f != nil {
		return nil, refuse([]Finding{placed(f, file)}, "cannot split YAML")
	}
	return docs, nil
}

// placed is the finding for a fault whose line counts from the start of file.
func placed(f *fault, file string) Finding {
	return Finding{Code: f.code, Severity: Error, Message: f.what, Fix: f.code.Fix, File: file, Line: f.line}
}

func split(stream []byte, file string, reader *yamlReader) ([]Document, *fault) {
	limits := &reader.limits
	if len(stream) > limits.StreamBytes {
		return nil, limits.breach(ErrStreamTooLarge, &limits.StreamBytes, 0)
	}
	text, f := trimBOM(stream)
	if f != nil {
		return nil, f
	}
	s := &splitter{file: file, reader: reader, limits: limits, text: text, line: 1, started: 1}
	if f := s.run(); f != nil {
		return nil, f
	}
	return s.docs, nil
}

type splitter struct {
	file   string
	reader *yamlReader
	limits *Limits // of the reader
	text   []byte
	docs   []Document

	seen    int  // documents, empty ones included
	start   int  // offset of the current document
	started int  // its line
	content bool // whether it has any
	line    int
}

// run scans the lines. A marker at the start of a line is always a marker: YAML forbids
// it inside scalars.
func (s *splitter) run() *fault {
	for at := 0; at < len(s.text); s.line++ {
		at = s.skipMarks(at)
		first, rest := cutLine(s.text[at:])
		if len(first) == 0 {
			break
		}
		next := len(s.text) - len(rest)
		switch {
		case isMarker(first, "---"):
			if f := s.end(at); f != nil {
				return f
			}
			s.begin(at, next, first)
		case isMarker(first, "..."):
			if tail := first[3:]; !isComment(tail) {
				return &fault{code: ErrInvalidYAML, line: s.line, what: `text after the end of a document ("...")`}
			}
			if f := s.end(at); f != nil {
				return f
			}
			s.start, s.started = next, s.line+1
		case !s.content && first[0] == '%':
			return &fault{code: ErrUnsupportedYAML, line: s.line, what: fmt.Sprintf("YAML directive %.40q", bytes.TrimSpace(first))}
		default:
			s.content = s.content || !isComment(first)
		}
		at = next
	}
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

// begin starts a document at a marker line, which is part of it only when it
// holds more than the marker.
func (s *splitter) begin(at, next int, marker []byte) {
	s.start, s.started = next, s.line+1
	if tail := bytes.TrimSpace(marker[3:]); len(tail) > 0 {
		s.start, s.started = at, s.line
		s.content = !isComment(tail)
	}
}

// end closes the current document before the offset end.
func (s *splitter) end(end int) *fault {
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
	s.docs = append(s.docs, newDocument(s.file, s.started, len(s.docs), raw, s.reader))
	return nil
}

// cutLine returns the first line of text with its line end, and the rest.
func cutLine(text []byte) (line, rest []byte) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, nil
}

// isMarker reports whether a line is a document marker: the three characters, followed by
// space or the end of the line.
func isMarker(line []byte, marker string) bool {
	if len(line) < 3 || string(line[:3]) != marker {
		return false
	}
	return len(line) == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\n' || line[3] == '\r'
}

// isComment reports whether a line is empty or only contains a comment.
func isComment(line []byte) bool {
	for _, c := range line {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '#'
		}
	}
	return true
}
