package xpkg

import (
	"errors"
	"sync"

	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
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
	// after the last line if it is missing. It is nil for a document of NewDocument.
	Raw []byte

	body *body
}

// body holds the results that are computed once per document.
type body struct {
	// again means that the text is read for each use and not kept.
	again bool
	// length is the length of a text that is read for each use, if it is known.
	length int

	// source returns the line of the file that a line of a generated text was made from; nil for other texts.
	source func(line int) int

	once    sync.Once
	read    func() ([]byte, error)
	json    []byte
	warning *yamldoc.Fault // of a document that was read leniently
	err     error
}

// NewDocument returns a document without source text, such as an object of an index. For
// each use of its content the document calls read, which returns canonical JSON and must be
// safe for concurrent use.
func NewDocument(file string, line, index int, read func() ([]byte, error)) Document {
	return Document{File: file, Line: line, Index: index, body: &body{again: true, read: read}}
}

// GeneratedDocument returns a document with a text that was made from one document of a file, which starts in the given
// line. Findings about the text have the lines of the file, which source returns for lines from 1.
func GeneratedDocument(file string, line int, raw []byte, source func(line int) int) Document {
	d := newDocument(file, line, 0, raw, yamldoc.NewReader(yamldoc.Limits{}))
	d.body.source = source
	return d
}

// newDocument returns a document whose JSON is computed from raw on first use.
func newDocument(file string, line, index int, raw []byte, reader *yamldoc.Reader) Document {
	b := &body{}
	b.read = func() (json []byte, err error) {
		json, b.warning, err = reader.JSON(raw)
		return json, err
	}
	return Document{File: file, Line: line, Index: index, Raw: raw, body: b}
}

// JSON returns the document as canonical JSON: keys in byte order, no insignificant
// space, numbers and booleans as interpreted by sigs.k8s.io/yaml. The caller must not
// change the result. It is computed once and kept, except for a document of NewDocument,
// which is read for each call. The error names the file, the line and the number of the
// document.
func (d Document) JSON() ([]byte, error) {
	json, err := d.canonical()
	if err != nil {
		return nil, refuse([]Finding{d.faultFinding(err)}, "cannot read YAML")
	}
	return json, nil
}

// Decode decodes the document into a value with JSON tags, as an API server does: field names
// are case-sensitive, and unknown fields are ignored.
func (d Document) Decode(into any) error {
	json, err := d.JSON()
	if err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(json, into); err != nil {
		return refuse([]Finding{d.Finding(ErrNotAnObject, 0, yamldoc.Printable(err.Error()))}, "cannot decode a document")
	}
	return nil
}

// canonical is like JSON, but returns the error as a fault.
func (d Document) canonical() ([]byte, error) {
	if d.body == nil {
		return newDocument(d.File, d.Line, d.Index, d.Raw, yamldoc.NewReader(yamldoc.Limits{})).canonical()
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

// size returns the length of the canonical JSON in bytes, and 0 for a document that cannot be read.
func (d Document) size() int {
	if d.body != nil && d.body.length > 0 {
		return d.body.length
	}
	json, _ := d.canonical()
	return len(json)
}

// warning returns the problem that a lenient reader accepted, or nil. The document was read
// before.
func (d Document) warning() *yamldoc.Fault {
	if d.body == nil {
		return nil
	}
	return d.body.warning
}

// Finding returns a finding about the document, with the severity Error. Line is relative
// to the document, from 1; 0 means the first line with content.
func (d Document) Finding(code errcode.Code, line int, message string) Finding {
	switch {
	case line <= 0:
		line = d.contentLine()
	case d.body != nil && d.body.source != nil:
		line = d.body.source(line)
	default:
		line += d.Line - 1
	}
	return Finding{
		Code: code, Severity: Error, Message: message, Fix: code.Fix,
		File: d.File, Line: line, Document: d.Index + 1,
	}
}

// FieldLine returns the line within the document of the field at a path such as "spec.versions[0].name", or of its
// nearest existing parent. It returns 0, for which Finding uses the first line, if there is none.
func (d Document) FieldLine(path string) int {
	l := yamldoc.Locator{Raw: d.Raw}
	return l.Line(path)
}

// faultFinding converts an error of this document to a finding with its position.
func (d Document) faultFinding(err error) Finding {
	var f *yamldoc.Fault
	if !errors.As(err, &f) {
		f = &yamldoc.Fault{Code: errcode.From(err).Code, What: err.Error()}
	}
	finding := d.Finding(f.Code, f.Line, f.What)
	finding.Excerpt, finding.Other = f.Excerpt, Place{f.OtherFile, f.OtherLine}
	return finding
}

// contentLine returns the first line of the document that is neither empty nor a comment.
func (d Document) contentLine() int {
	line := d.Line
	for rest := d.Raw; len(rest) > 0; line++ {
		var first []byte
		first, rest = yamldoc.CutLine(rest)
		if !yamldoc.IsComment(first) {
			return line
		}
	}
	return d.Line
}

// withJSON returns a copy of the document with the given JSON.
func (d Document) withJSON(json []byte) Document {
	d.body = &body{read: func() ([]byte, error) { return json, nil }}
	return d
}

// Split splits a stream into its documents, without changing or parsing them (YAML 1.2.2,
// section 9). Documents that contain only space and comments are omitted. A separator line
// that contains more than the separator belongs to the document that it starts, so that a
// comment on it is kept.
//
// File is the name of the stream in messages. The error has the class Limit for a stream
// over a limit, and Invalid for UTF-16 and for YAML directives.
func Split(stream []byte, file string, limits Limits) ([]Document, error) {
	docs, f := split(stream, file, yamldoc.NewReader(limits.yaml()))
	if f != nil {
		return nil, refuse([]Finding{placed(f, file)}, "cannot split YAML")
	}
	return docs, nil
}

func split(stream []byte, file string, reader *yamldoc.Reader) ([]Document, *yamldoc.Fault) {
	raw, f := reader.Split(stream)
	if f != nil {
		return nil, f
	}
	return documents(raw, file, 0, reader), nil
}

// documents returns the documents of a part of a stream, the first of which has an index.
func documents(raw []yamldoc.Document, file string, first int, reader *yamldoc.Reader) []Document {
	docs := make([]Document, len(raw))
	for i, d := range raw {
		docs[i] = newDocument(file, d.Line, first+i, d.Raw, reader)
	}
	return docs
}

// placed returns the finding for a fault whose line counts from the start of file.
func placed(f *yamldoc.Fault, file string) Finding {
	return Finding{
		Code: f.Code, Severity: Error, Message: f.What, Other: Place{f.OtherFile, f.OtherLine}, Fix: f.Code.Fix, File: file,
		Line: f.Line,
	}
}
