package xpkg

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrDamagedIndex is the code for a damaged index, or damaged objects beside it.
var ErrDamagedIndex = errcode.Code{
	Name: "DamagedIndex", Class: errcode.Untrusted,
	Cause: "The stored index of a package is damaged, or was written by another version of xpkg.",
	Fix:   "No action needed: xpkg rebuilds the index from the package.",
}

// An Index lists the content of a package, so that the package can be read again without
// its YAML. The canonical JSON of the objects is stored beside it in one blob. Both are
// derived data: they are stored under the digest of the package, the version of the index
// and the policy, and are rebuilt if they are inconsistent.
type Index struct {
	// Version of the encoding; see IndexVersion.
	Version int
	// File is the name of the stream in messages.
	File string
	// Meta is the canonical JSON of the metadata, and MetaLine its line.
	Meta     []byte
	MetaLine int
	// Objects are in the order of the package.
	Objects []IndexEntry
}

// An IndexEntry locates one object.
type IndexEntry struct {
	GVK  schema.GroupVersionKind
	Name string
	// Offset and Length are the place of the canonical JSON in the blob.
	Offset, Length int64
	// SHA256 of the canonical JSON.
	SHA256 [sha256.Size]byte
	// Labels and Annotations of the object whose values are strings. An index of version
	// 1 does not have them.
	Labels, Annotations map[string]string
	// CallsProgram is [Object.CallsProgram]. Indexes before version 3 do not have it.
	CallsProgram bool
	// Line and Document are the place in the stream; Line counts from 1, Document,
	// among those with content, from 0.
	Line, Document int
}

// NewIndex returns the index of a package.
func NewIndex(pkg *Package) (*Index, error) {
	meta, err := pkg.Meta.Raw.JSON()
	if err != nil {
		return nil, err
	}
	x := &Index{Version: IndexVersion, File: pkg.Meta.Raw.File, Meta: meta, MetaLine: pkg.Meta.Raw.Line, Objects: make([]IndexEntry, len(pkg.Objects))}
	errs := make([]error, len(pkg.Objects))
	parallel(len(pkg.Objects), func(i int) {
		var text []byte
		o := &pkg.Objects[i]
		text, errs[i] = o.JSON()
		if errs[i] != nil {
			return
		}
		t := readTags(text)
		x.Objects[i] = IndexEntry{
			GVK: o.GVK, Name: o.Name, Length: int64(len(text)), SHA256: sha256.Sum256(text), Labels: t.labels, Annotations: t.annotations,
			CallsProgram: callsProgram(o.GVK.GroupKind(), text),
			Line:         o.Line, Document: o.Index,
		}
	})
	offset := int64(0)
	for i, e := range x.Objects {
		if errs[i] != nil {
			return nil, errs[i]
		}
		x.Objects[i].Offset = offset
		offset += e.Length
	}
	return x, nil
}

// ObjectTexts returns the canonical JSON of all objects. Their concatenation is the blob
// that the index refers to. The caller must not change them.
func ObjectTexts(pkg *Package) ([][]byte, error) {
	texts := make([][]byte, len(pkg.Objects))
	var err error
	for i := range pkg.Objects {
		if texts[i], err = pkg.Objects[i].JSON(); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// Package returns the package of the index. Its documents have no Raw, and read their
// JSON from the blob on each use, so that the package does not hold it in memory. JSON
// that does not match the index is an error of the class Untrusted, after a blob that is
// a [Repairer] has tried to repair itself. The package has no findings: they were
// reported when it was read from YAML.
func (x *Index) Package(blob io.ReaderAt, limits Limits) (*Package, error) {
	limits = limits.withDefaults()
	if !isCanonical(x.Meta) {
		return nil, ErrDamagedIndex.New(nil, "the metadata of an index is not canonical JSON")
	}
	doc := Document{File: x.File, Line: x.MetaLine}.withJSON(x.Meta)
	h, f := readHeader(x.Meta)
	if f != nil {
		return nil, ErrDamagedIndex.New(f, "cannot read the metadata of an index")
	}
	meta, faults := readMeta(doc, h, &limits)
	for _, f := range faults {
		if PolicyInstall().Severity(f.code) == Error {
			return nil, ErrDamagedIndex.New(f, "cannot read the metadata of an index")
		}
	}
	pkg := &Package{Meta: meta, Objects: make([]Object, len(x.Objects))}
	most := 2 * int64(limits.DocumentBytes) // JSON can be longer than YAML.
	for i := range x.Objects {
		e := &x.Objects[i]
		doc := Document{File: x.File, Line: e.Line, Index: e.Document, body: &body{again: true, read: func() ([]byte, error) { return e.read(blob, most) }}}
		pkg.Objects[i] = Object{GVK: e.GVK, Name: e.Name, Document: doc}
		if x.Version >= withTags {
			pkg.Objects[i].entry, pkg.Objects[i].callsKnown = e, x.Version >= withCalls
		}
	}
	return pkg, nil
}

// A Repairer is a blob that can be rebuilt if it is damaged.
type Repairer interface {
	// Repair rebuilds the blob. It must be safe for concurrent use.
	Repair() error
}

// read reads one object and verifies its hash. An object has at most most bytes, so that
// a wrong length in an index allocates no memory.
func (e *IndexEntry) read(blob io.ReaderAt, most int64) ([]byte, error) {
	text, f := e.readOnce(blob, most)
	if r, ok := blob.(Repairer); ok && f != nil {
		if err := r.Repair(); err != nil {
			return nil, &fault{code: ErrDamagedIndex, what: err.Error()}
		}
		text, f = e.readOnce(blob, most)
	}
	if f != nil {
		return nil, f
	}
	return text, nil
}

func (e *IndexEntry) readOnce(blob io.ReaderAt, most int64) ([]byte, *fault) {
	if e.Length > most {
		return nil, &fault{code: ErrDamagedIndex, what: "an object is larger than any can be"}
	}
	text := make([]byte, e.Length)
	n, err := blob.ReadAt(text, e.Offset)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, &fault{code: ErrDamagedIndex, what: err.Error()}
	case int64(n) != e.Length || sha256.Sum256(text) != e.SHA256:
		return nil, &fault{code: ErrDamagedIndex, what: "an object is not the one that was written"}
	}
	return text, nil
}

// same compares the fields that an index of the version contains.
func (e *IndexEntry) same(other *IndexEntry, version int) bool {
	return e.GVK == other.GVK && e.Name == other.Name && e.Offset == other.Offset && e.Length == other.Length &&
		e.SHA256 == other.SHA256 && e.Line == other.Line && e.Document == other.Document &&
		(version < withTags || maps.Equal(e.Labels, other.Labels) && maps.Equal(e.Annotations, other.Annotations)) &&
		(version < withCalls || e.CallsProgram == other.CallsProgram)
}

// Matches verifies the index against a package, object by object. An index that came with
// a package is not trusted before that.
func (x *Index) Matches(pkg *Package) error {
	own, err := NewIndex(pkg)
	if err != nil {
		return err
	}
	switch {
	case !bytes.Equal(own.Meta, x.Meta):
		return ErrDamagedIndex.New(nil, "the index has other metadata than the package")
	case len(own.Objects) != len(x.Objects):
		return ErrDamagedIndex.New(nil, "the index has %d objects, the package %d", len(x.Objects), len(own.Objects))
	}
	for i, e := range own.Objects {
		if o := &x.Objects[i]; !o.same(&e, x.Version) {
			return ErrDamagedIndex.New(fmt.Errorf("%s %q is not the same", safe(o.GVK.Kind), o.Name), "the index is not that of the package")
		}
	}
	return nil
}
