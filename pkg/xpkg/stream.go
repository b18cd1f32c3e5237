package xpkg

import "bytes"

// Stream returns the package.yaml of the folder. It contains each document as its author
// wrote it; splitting the stream returns each document byte for byte. Only the text
// between documents changes: a UTF-8 byte order mark at the start of a file is dropped, a
// missing line end at the end of a file is added, documents that only contain comments
// are omitted (older readers reject them), and one separator line separates two
// documents. CRLF line ends are kept.
func (f *Folder) Stream() []byte { return joinDocuments(f.Documents) }

// Examples returns the stream of the examples in the form of Stream; nil if there are
// none.
func (f *Folder) Examples() []byte { return joinDocuments(f.ExampleDocuments) }

const separator = "---\n"

func joinDocuments(docs []Document) []byte {
	size := 0
	for _, d := range docs {
		size += len(d.Raw) + len(separator)
	}
	if size == 0 {
		return nil
	}
	var b bytes.Buffer
	b.Grow(size)
	for i, d := range docs {
		// A document that starts with a marker line of its own needs no other.
		if first, _ := cutLine(d.Raw); i > 0 && !isMarker(first, "---") {
			b.WriteString(separator)
		}
		b.Write(d.Raw)
	}
	return b.Bytes()
}
