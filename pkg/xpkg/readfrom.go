package xpkg

import (
	"errors"
	"fmt"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// Texts stores the canonical JSON of objects, such as a file: what is written is appended, and can be read at its
// offset from then on. ReadAt must be safe for concurrent use.
type Texts interface {
	io.Writer
	io.ReaderAt
}

// ReadFrom reads the content of a package.yaml from in, and returns the same package as Read and the same findings, but
// holds only a few MiB of it in memory. It writes the canonical JSON of each object to texts, in the order of the
// stream. The objects read it from there for each use, and have no Raw; their findings may have no excerpt, and the
// line on which their document begins. For findings with their exact place, use Read.
//
// The error has the class Limit if the stream exceeds a limit, and Invalid for a package with other errors. Errors of
// in and texts are returned as they are.
func ReadFrom(in io.Reader, texts Texts, opts ReadOptions) (*Package, error) {
	r := &streamReader{assembler: newAssembler(opts), reader: opts.reader(), texts: texts}
	stream := r.reader.Stream(in)
	for {
		part, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return accepted(r.assemble())
		}
		if err == nil {
			err = r.add(part)
		}
		var f *yamldoc.Fault
		if errors.As(err, &f) {
			return nil, refuse([]Finding{placed(f, opts.file())}, "cannot split YAML")
		}
		if err != nil {
			return nil, err
		}
	}
}

// A streamReader assembles a package from the parts of its stream.
type streamReader struct {
	*assembler
	reader *yamldoc.Reader
	texts  Texts
	// documents is the number of documents of the parts that were read, and written the length of texts.
	documents int
	written   int64
}

// add reads the documents of a part, and moves the JSON of the objects to texts.
func (r *streamReader) add(part []yamldoc.Document) error {
	docs := documents(part, r.opts.file(), r.documents, r.reader)
	r.documents += len(docs)
	known := len(r.entries)
	r.read(docs)
	for i := range r.entries[known:] {
		e := &r.entries[known+i]
		if isMetaGroup(e.header.gvk().Group) {
			continue // The metadata is small.
		}
		r.checkSeparator(e.doc, e.header)
		if err := r.move(&e.doc); err != nil {
			return err
		}
	}
	return nil
}

// move writes the JSON of a document, and replaces the document by one that reads it from there.
func (r *streamReader) move(d *Document) error {
	json, _ := d.canonical() // It was read before.
	if _, err := r.texts.Write(json); err != nil {
		return fmt.Errorf("keep %s: %w", d.File, err)
	}
	at, n := r.written, len(json)
	r.written += int64(n)
	*d = NewDocument(d.File, d.Line, d.Index, func() ([]byte, error) {
		json := make([]byte, n)
		if _, err := r.texts.ReadAt(json, at); err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		return json, nil
	})
	d.body.length = n
	return nil
}
