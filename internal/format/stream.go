package format

import "bytes"

// Stream is the package.yaml of the folder. Each document is in it as its author
// wrote it; splitting the stream gives every one back byte for byte. What changes
// is between and around the documents: the mark of UTF-8 at the start of a file is
// dropped, a missing line end at the end of a file is added (as every reader that
// goes by lines does), documents of nothing but comments are left out (older
// readers refuse them), and one separator line stands between two documents.
// CRLF line ends stay.
func (f *Folder) Stream() []byte { return joinDocuments(f.Documents) }

// Examples is the stream of the examples, made like Stream; nil when there are
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
