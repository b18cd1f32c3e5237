package xpkg

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IndexVersion is the version of the encoding of EncodeIndex, and of the canonical JSON
// beside it. It is incremented when either changes.
const IndexVersion = 3

// withTags is the first version that has the labels and annotations of objects.
// Packages were published with the version before it, whose indexes can be read
// and proven still.
const withTags = 2

// withCalls is the first version with IndexEntry.CallsProgram.
const withCalls = 3

const indexMagic = "xpkg index\n"

// maxIndexEntries limits the number of entries before memory is allocated for them.
const maxIndexEntries = 1 << 20

// EncodeIndex encodes an index in the format of its version. The encoding is
// deterministic.
//
// The format: the words "xpkg index" and a line feed; then unsigned variable-length
// integers, and strings preceded by their length: version, file, line of the metadata,
// metadata, number of types, the group, version and kind of each, number of objects, and
// for each its type, name, length, hash (32 bytes), line, document, labels and
// annotations (their number, and the key and value of each in key order), and 1 if the
// object makes the API server call the runtime, otherwise 0. Offsets are the sums of the
// lengths.
func EncodeIndex(x *Index) []byte {
	types := indexTypes(x)
	w := indexWriter{buf: []byte(indexMagic)}
	w.number(x.Version)
	w.text(x.File)
	w.number(x.MetaLine)
	w.text(string(x.Meta))
	w.number(len(types))
	for _, t := range types {
		w.text(t.Group)
		w.text(t.Version)
		w.text(t.Kind)
	}
	w.number(len(x.Objects))
	for _, e := range x.Objects {
		w.number(slices.Index(types, e.GVK))
		w.text(e.Name)
		w.number(int(e.Length))
		w.buf = append(w.buf, e.SHA256[:]...)
		w.number(e.Line)
		w.number(e.Document)
		if x.Version >= withTags {
			w.pairs(e.Labels)
			w.pairs(e.Annotations)
		}
		if x.Version >= withCalls {
			w.flag(e.CallsProgram)
		}
	}
	return w.buf
}

// indexTypes are the types of the objects, in the order in which they first come.
func indexTypes(x *Index) []schema.GroupVersionKind {
	var types []schema.GroupVersionKind
	for _, e := range x.Objects {
		if !slices.Contains(types, e.GVK) {
			types = append(types, e.GVK)
		}
	}
	return types
}

type indexWriter struct{ buf []byte }

func (w *indexWriter) number(n int) {
	w.buf = binary.AppendUvarint(w.buf, uint64(n)) //nolint:gosec // nothing in an index is negative
}

func (w *indexWriter) flag(b bool) {
	if b {
		w.number(1)
		return
	}
	w.number(0)
}

func (w *indexWriter) text(s string) {
	w.number(len(s))
	w.buf = append(w.buf, s...)
}

func (w *indexWriter) pairs(m map[string]string) {
	w.number(len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.text(k)
		w.text(m[k])
	}
}

// DecodeIndex decodes the format of EncodeIndex. The error has the class Untrusted, also
// for a later version: an index is rebuilt, never repaired.
func DecodeIndex(text []byte) (*Index, error) {
	x, err := decodeIndex(text)
	if err != nil {
		return nil, ErrDamagedIndex.New(err, "cannot read an index")
	}
	return x, nil
}

func decodeIndex(text []byte) (*Index, error) {
	if len(text) < len(indexMagic) || string(text[:len(indexMagic)]) != indexMagic {
		return nil, errors.New("it is not an index")
	}
	r := &indexReader{rest: text[len(indexMagic):]}
	version := r.number()
	if version < 1 || version > IndexVersion {
		return nil, errors.New("it is of another version")
	}
	x := &Index{Version: version, File: string(r.text()), MetaLine: r.number(), Meta: r.text()}
	types := r.types()
	x.Objects = r.entries(types, version)
	switch {
	case r.short:
		return nil, errors.New("it is cut short")
	case len(r.rest) > 0:
		return nil, errors.New("there is more than an index")
	}
	return x, nil
}

// indexReader reads the parts of an index. After the end of the text it returns zero
// values.
type indexReader struct {
	rest  []byte
	short bool
}

func (r *indexReader) number() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > 1<<40 {
		r.short, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *indexReader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.short, r.rest = true, nil
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

func (r *indexReader) text() []byte { return r.bytes(r.number()) }

// count is a number of things, each of which takes at least so many bytes.
func (r *indexReader) count(size int) int {
	n := r.number()
	if n > maxIndexEntries || n*size > len(r.rest) {
		r.short = true
		return 0
	}
	return n
}

func (r *indexReader) types() []schema.GroupVersionKind {
	types := make([]schema.GroupVersionKind, r.count(3))
	for i := range types {
		types[i] = schema.GroupVersionKind{Group: string(r.text()), Version: string(r.text()), Kind: string(r.text())}
	}
	return types
}

func (r *indexReader) entries(types []schema.GroupVersionKind, version int) []IndexEntry {
	entries := make([]IndexEntry, r.count(37))
	offset := int64(0)
	for i := range entries {
		e := &entries[i]
		if t := r.number(); t < len(types) {
			e.GVK = types[t]
		} else {
			r.short = true
		}
		e.Name = string(r.text())
		e.Offset, e.Length = offset, int64(r.number())
		copy(e.SHA256[:], r.bytes(len(e.SHA256)))
		e.Line, e.Document = r.number(), r.number()
		if version >= withTags {
			e.Labels, e.Annotations = r.pairs(), r.pairs()
		}
		if version >= withCalls {
			e.CallsProgram = r.flag()
		}
		offset += e.Length
	}
	return entries
}

// flag is 0 or 1; there is one way to write each index.
func (r *indexReader) flag() bool {
	n := r.number()
	r.short = r.short || n > 1
	return n == 1
}

func (r *indexReader) pairs() map[string]string {
	n := r.count(2)
	if n == 0 {
		return nil
	}
	pairs := make(map[string]string, n)
	for range n {
		k := string(r.text())
		pairs[k] = string(r.text())
	}
	return pairs
}
