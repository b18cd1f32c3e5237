package xpkg

import (
	"sync"
)

// A Document is one YAML document as its author wrote it. It is a value; copies share
// computed results.
type Document struct {
	// File is the path within the folder, or the name of the stream.
	File string
	// Line is the line of File on which Raw begins, from 1.
	Line int
	// Index is the position among the documents of File that have content, from 0.
	Index int
	// Raw is the source text: every byte between the separators, with a line end added
	// after the last line if it is missing. It is nil for a document from an index.
	Raw []byte

	body *body
}

// body holds the results that are computed once per document.
type body struct {
	// again means that the text is read for each use instead of being kept.
	again bool

	once sync.Once
	read func() ([]byte, error)
	json []byte
	err  error
}

// newDocument returns a document whose JSON is computed from raw on first use.
func newDocument(file string, line, index int, raw []byte, reader *yamlReader) Document {
	read := func() ([]byte, error) {
		if f := checkEncoding(raw); f != nil {
			return nil, f
		}
		return reader.toJSON(raw)
	}
	return Document{File: file, Line: line, Index: index, Raw: raw, body: &body{read: read}}
}

// JSON returns the document as canonical JSON: keys in byte order, no insignificant
// space, numbers and booleans as interpreted by sigs.k8s.io/yaml. The caller must not
// change the result. It is computed once and kept, except for a document from an index,
// which is read for each call. The error names the file, the line and the number of the
// document.
func (d Document) JSON() ([]byte, error) {
	json, err := d.canonical()
	if err != nil {
		f := d.finding(err)
		return nil, refuse([]Finding{f}, "cannot read YAML")
	}
	return json, nil
}

// canonical is JSON with the error as a fault.
func (d Document) canonical() ([]byte, error) {
	if d.body == nil {
		return newDocument(d.File, d.Line, d.Index, d.Raw, newYAMLReader(Limits{})).canonical()
	}
	if d.body.again {
		return d.body.read()
	}
	d.body.once.Do(func() {
		d.body.json, d.body.err = d.body.read()
		d.body.read = nil
	})
	return d.body.json, d.body.err
}

// finding converts an error of this document to a finding with its position.
func (d Document) finding(err error) Finding {
	f, ok := err.(*fault)
	if !ok {
		f = &fault{code: ErrInvalidYAML, what: err.Error()}
	}
	line := d.contentLine()
	if f.line > 0 {
		line = d.Line + f.line - 1
	}
	return Finding{
		Code: f.code, Severity: Error, Message: f.what, Fix: f.code.Fix, Excerpt: f.excerpt,
		File: d.File, Line: line, Document: d.Index + 1,
	}
}

// contentLine returns the first line of the document that is neither empty nor a comment.
func (d Document) contentLine() int {
	line := d.Line
	for rest := d.Raw; len(rest) > 0; line++ {
		var first []byte
		first, rest = cutLine(rest)
		if !isComment(first) {
			return line
		}
	}
	return d.Line
}

// withJSON is the document with other JSON than its own.
func (d Document) withJSON(json []byte) Document {
	d.body = &body{read: func() ([]byte, error) { return json, nil }}
	return d
}
