package index

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/parallel"
)

// ErrDamaged is the code for a damaged index, or damaged objects beside it.
var ErrDamaged = errcode.Code{
	Name: "DamagedIndex", Class: errcode.Untrusted,
	Cause: "The stored index of a package is damaged, or was written by another version of xpkg.",
	Fix:   "No action needed: xpkg rebuilds the index from the package.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrDamaged} }

// An Index lists the content of a package, so that the package can be read again without
// its YAML.
type Index struct {
	// Version of the encoding; see Version.
	Version int
	// File is the name of the stream in messages.
	File string
	// Meta is the canonical JSON of the metadata, and MetaLine its line.
	Meta     []byte
	MetaLine int
	// Objects are in the order of the package.
	Objects []Entry
}

// An Entry locates one object.
type Entry struct {
	GVK  schema.GroupVersionKind
	Name string
	// Offset and Length locate the canonical JSON in the blob.
	Offset, Length int64
	// Summary of the object. Indexes before version 2 contain only the hash, and indexes
	// before version 3 do not contain CallsRuntime.
	xpkg.Summary
	// Defines are the kinds that the object defines. Indexes before version 4 do not contain them.
	Defines []xpkg.Definition
	// Line and Document locate the object in the stream. Line counts from 1; Document
	// counts documents with content from 0.
	Line, Document int
}

// New returns the index of a package.
func New(pkg *xpkg.Package) (*Index, error) {
	x, err := NewMeta(pkg.Meta)
	if err != nil {
		return nil, err
	}
	x.Objects = make([]Entry, len(pkg.Objects))
	errs := make([]error, len(pkg.Objects))
	parallel.Do(len(pkg.Objects), func(i int) { x.Objects[i], errs[i] = entryOf(pkg.Objects[i]) })
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

func entryOf(o xpkg.Object) (Entry, error) {
	text, err := o.JSON()
	if err != nil {
		return Entry{}, err
	}
	o.Known, o.KnownDefinitions = nil, nil // The content of another index is not trusted.
	summary, err := o.Summary()
	if err != nil {
		return Entry{}, err
	}
	defines, err := o.Definitions()
	return Entry{
		GVK: o.GVK, Name: o.Name, Length: int64(len(text)), Summary: summary, Defines: defines, Line: o.Line,
		Document: o.Index,
	}, err
}

// NewMeta returns an index with the metadata only.
func NewMeta(meta xpkg.Meta) (*Index, error) {
	text, err := meta.Raw.JSON()
	if err != nil {
		return nil, err
	}
	return &Index{Version: Version, File: meta.Raw.File, Meta: text, MetaLine: meta.Raw.Line}, nil
}

// Size returns the length of the blob in bytes.
func (x *Index) Size() int64 {
	if len(x.Objects) == 0 {
		return 0
	}
	last := x.Objects[len(x.Objects)-1]
	return last.Offset + last.Length
}

// Blob returns the canonical JSON of all objects. Their concatenation is the blob that the
// index of the package refers to. The caller must not change them.
func Blob(pkg *xpkg.Package) ([][]byte, error) {
	texts := make([][]byte, len(pkg.Objects))
	var err error
	for i := range pkg.Objects {
		if texts[i], err = pkg.Objects[i].JSON(); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// Package returns the package of the index. Its documents have no Raw, and read their JSON
// from the blob on each use, so that the package does not hold it in memory. If JSON does
// not match the index, a blob that is a [Repairer] is repaired first; if it still does not
// match, the error has the code ErrDamaged. The package has no findings: they were
// reported when it was read from YAML.
func (x *Index) Package(blob io.ReaderAt, limits xpkg.Limits) (*xpkg.Package, error) {
	meta, err := x.ReadMeta(limits)
	if err != nil {
		return nil, err
	}
	pkg := &xpkg.Package{Meta: meta, Objects: make([]xpkg.Object, len(x.Objects))}
	most := 2 * int64(limits.WithDefaults().DocumentBytes) // JSON can be longer than YAML.
	for i := range x.Objects {
		e := &x.Objects[i]
		doc := xpkg.NewDocument(x.File, e.Line, e.Document, func() ([]byte, error) { return e.read(blob, most) })
		pkg.Objects[i] = xpkg.Object{GVK: e.GVK, Name: e.Name, Document: doc}
		if x.Version >= withCalls {
			pkg.Objects[i].Known = &e.Summary
		}
		if x.HasDefinitions() {
			pkg.Objects[i].KnownDefinitions = e.Defines
		}
	}
	return pkg, nil
}

// ReadMeta returns the metadata of the index. The error has the code ErrDamaged.
func (x *Index) ReadMeta(limits xpkg.Limits) (xpkg.Meta, error) {
	if !canonical.Valid(x.Meta) {
		return xpkg.Meta{}, ErrDamaged.New(nil, "the metadata of an index is not canonical JSON")
	}
	doc := xpkg.NewDocument(x.File, x.MetaLine, 0, func() ([]byte, error) { return x.Meta, nil })
	meta, err := xpkg.ReadMetaDocument(doc, xpkg.ReadOptions{File: x.File, Limits: limits})
	if err != nil {
		return xpkg.Meta{}, ErrDamaged.New(err, "cannot read the metadata of an index")
	}
	return meta, nil
}

// A Repairer is a blob that can be rebuilt if it is damaged.
type Repairer interface {
	// Repair rebuilds the blob. It must be safe for concurrent use.
	Repair() error
}

// read reads one object and verifies its hash. An object has at most most bytes, so that
// a wrong length in an index allocates no memory.
func (e *Entry) read(blob io.ReaderAt, most int64) ([]byte, error) {
	text, err := e.readOnce(blob, most)
	if r, ok := blob.(Repairer); ok && err != nil {
		if err := r.Repair(); err != nil {
			return nil, ErrDamaged.New(err, "cannot repair the objects of a package")
		}
		text, err = e.readOnce(blob, most)
	}
	return text, err
}

func (e *Entry) readOnce(blob io.ReaderAt, most int64) ([]byte, error) {
	if e.Length > most {
		return nil, ErrDamaged.New(nil, "an object has %d bytes, which exceeds the limit", e.Length)
	}
	text := make([]byte, e.Length)
	n, err := blob.ReadAt(text, e.Offset)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, ErrDamaged.New(err, "cannot read an object")
	case int64(n) != e.Length || sha256.Sum256(text) != e.SHA256:
		return nil, ErrDamaged.New(nil, "an object does not match its hash")
	}
	return text, nil
}

// equal compares the fields that an index of the version contains.
func (e *Entry) equal(other *Entry, version int) bool {
	return e.GVK == other.GVK && e.Name == other.Name && e.Offset == other.Offset && e.Length == other.Length &&
		e.SHA256 == other.SHA256 && e.Line == other.Line && e.Document == other.Document &&
		(version < withLabels || maps.Equal(e.Labels, other.Labels) && maps.Equal(e.Annotations, other.Annotations)) &&
		(version < withCalls || e.CallsRuntime == other.CallsRuntime) &&
		(version < withDefinitions || sameDefinitions(e.Defines, other.Defines, version))
}

// Matches verifies the index against a package, object by object. An index that came with
// a package must be verified before it is used.
func (x *Index) Matches(pkg *xpkg.Package) error {
	own, err := New(pkg)
	if err != nil {
		return err
	}
	switch {
	case !bytes.Equal(own.Meta, x.Meta):
		return ErrDamaged.New(nil, "the metadata of the index differs from the metadata of the package")
	case len(own.Objects) != len(x.Objects):
		return ErrDamaged.New(nil, "the index has %d objects, the package %d", len(x.Objects), len(own.Objects))
	}
	for i, e := range own.Objects {
		if o := &x.Objects[i]; !o.equal(&e, x.Version) {
			return ErrDamaged.New(
				fmt.Errorf("%.100q %.260q differs", o.GVK.Kind, o.Name), "the index does not match the package",
			)
		}
	}
	return nil
}

// HasDefinitions reports whether the index contains all fields of the kinds that the objects define.
func (x *Index) HasDefinitions() bool { return x.Version >= withManaged }
