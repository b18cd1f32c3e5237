package index

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Version is the version of the encoding of Encode, and of the canonical JSON
// beside it. It is incremented when either changes.
const Version = 5

// withLabels is the first version with the labels and annotations of objects. Published
// packages have indexes of the previous version, which can still be decoded and verified.
const withLabels = 2

// withCalls is the first version with Entry.CallsRuntime.
const withCalls = 3

// withDefinitions is the first version with Entry.Defines.
const withDefinitions = 4

// withManaged is the first version with [xpkg.Definition.Managed].
const withManaged = 5

const magic = "xpkg index\n"

// maxEntries limits the number of entries before memory is allocated for them.
const maxEntries = 1 << 20

// Encode encodes an index in the format of its version. The encoding is
// deterministic.
//
// The format: the words "xpkg index" and a line feed; then unsigned variable-length
// integers, and strings preceded by their length: version, file, line of the metadata,
// metadata, number of types, the group, version and kind of each, number of objects, and
// for each its type, name, length, hash (32 bytes), line, document, labels and
// annotations (their number, and the key and value of each in key order), 1 if the
// object makes the API server call the runtime, otherwise 0, and the kinds that it defines:
// their number, and for each group, kind, plural, singular, short names, scope, flags (1 for a claim,
// plus 2 for a managed resource), number of versions, and name and flags of each version (1 if it is served,
// plus 2 if it is stored, plus 4 if it is deprecated). Offsets are the sums of the lengths.
func Encode(x *Index) []byte {
	types := typesOf(x)
	w := encoder{buf: []byte(magic)}
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
		if x.Version >= withLabels {
			w.pairs(e.Labels)
			w.pairs(e.Annotations)
		}
		if x.Version >= withCalls {
			w.flag(e.CallsRuntime)
		}
		if x.Version >= withDefinitions {
			w.definitions(e.Defines, x.Version)
		}
	}
	return w.buf
}

// typesOf returns the types of the objects, in the order of their first occurrence.
func typesOf(x *Index) []schema.GroupVersionKind {
	var types []schema.GroupVersionKind
	for _, e := range x.Objects {
		if !slices.Contains(types, e.GVK) {
			types = append(types, e.GVK)
		}
	}
	return types
}

type encoder struct{ buf []byte }

func (w *encoder) number(n int) {
	w.buf = binary.AppendUvarint(w.buf, uint64(n)) // No number in an index is negative.
}

func (w *encoder) flag(b bool) {
	if b {
		w.number(1)
		return
	}
	w.number(0)
}

func (w *encoder) text(s string) {
	w.number(len(s))
	w.buf = append(w.buf, s...)
}

func (w *encoder) pairs(m map[string]string) {
	w.number(len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.text(k)
		w.text(m[k])
	}
}

// Decode decodes the format of Encode. The error has the class Untrusted, also
// for a later version: an index is rebuilt, never repaired.
func Decode(text []byte) (*Index, error) {
	x, err := decode(text)
	if err != nil {
		return nil, ErrDamaged.New(err, "cannot read an index")
	}
	return x, nil
}

func decode(text []byte) (*Index, error) {
	if len(text) < len(magic) || string(text[:len(magic)]) != magic {
		return nil, errors.New("the text is not an index")
	}
	r := &decoder{rest: text[len(magic):]}
	version := r.number()
	if version < 1 || version > Version {
		return nil, errors.New("the index has another version")
	}
	x := &Index{Version: version, File: string(r.text()), MetaLine: r.number(), Meta: r.text()}
	types := r.types()
	x.Objects = r.entries(types, version)
	switch {
	case r.short:
		return nil, errors.New("the index is truncated")
	case len(r.rest) > 0:
		return nil, errors.New("text after the end of the index")
	}
	return x, nil
}

// decoder reads the parts of an index. After the end of the text it returns zero
// values.
type decoder struct {
	rest  []byte
	short bool
}

func (r *decoder) number() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > 1<<40 {
		r.short, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *decoder) bytes(n int) []byte {
	if n > len(r.rest) {
		r.short, r.rest = true, nil
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

func (r *decoder) text() []byte { return r.bytes(r.number()) }

// count reads the number of elements, each of which takes at least size bytes.
func (r *decoder) count(size int) int {
	n := r.number()
	if n > maxEntries || n*size > len(r.rest) {
		r.short = true
		return 0
	}
	return n
}

func (r *decoder) types() []schema.GroupVersionKind {
	types := make([]schema.GroupVersionKind, r.count(3))
	for i := range types {
		types[i] = schema.GroupVersionKind{Group: string(r.text()), Version: string(r.text()), Kind: string(r.text())}
	}
	return types
}

func (r *decoder) entries(types []schema.GroupVersionKind, version int) []Entry {
	entries := make([]Entry, r.count(37))
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
		if version >= withLabels {
			e.Labels, e.Annotations = r.pairs(), r.pairs()
		}
		if version >= withCalls {
			e.CallsRuntime = r.flag()
		}
		if version >= withDefinitions {
			e.Defines = r.definitions(version)
		}
		offset += e.Length
	}
	return entries
}

// flag reads 0 or 1. Other values are errors, so that each index has a single encoding.
func (r *decoder) flag() bool {
	n := r.number()
	r.short = r.short || n > 1
	return n == 1
}

func (r *decoder) pairs() map[string]string {
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
