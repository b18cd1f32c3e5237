package content

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// The two entries that are kept beside a package: what it holds, and its objects
// as canonical JSON.
func indexKey(d oci.Digest) oci.DerivedKey {
	return oci.DerivedKey{Digest: d, Name: "index", Version: format.IndexVersion}
}

func objectsKey(d oci.Digest) oci.DerivedKey {
	return oci.DerivedKey{Digest: d, Name: "objects", Version: format.IndexVersion}
}

// indexed gives a package from what was kept of it. Anything odd about that is a
// reason to read the YAML again and none to fail.
func (s *Source) indexed(ctx context.Context, ref oci.Reference) (*format.Package, bool) {
	raw, err := s.opts.Store.GetDerived(ctx, indexKey(ref.Digest))
	if err != nil {
		return nil, false
	}
	index, err := format.DecodeIndex(raw)
	if err != nil {
		return nil, false
	}
	blob := &objects{load: func() ([]byte, error) { return s.objects(context.WithoutCancel(ctx), ref) }}
	pkg, err := index.Package(blob, s.opts.FormatLimits)
	return pkg, err == nil
}

// keep writes down what was read. A cache that cannot be written costs time and
// nothing else.
func (s *Source) keep(ctx context.Context, d oci.Digest, pkg *format.Package) {
	index, err := format.NewIndex(pkg)
	if err != nil {
		return
	}
	var all bytes.Buffer
	if format.WriteObjects(&all, pkg) != nil || s.opts.Store.PutDerived(ctx, objectsKey(d), all.Bytes()) != nil {
		return
	}
	// The index comes last: where it is, the objects are.
	_ = s.opts.Store.PutDerived(ctx, indexKey(d), format.EncodeIndex(index))
}

// objects gives the canonical JSON of all objects: as it was kept, or else made
// again from the YAML.
func (s *Source) objects(ctx context.Context, ref oci.Reference) ([]byte, error) {
	if raw, err := s.opts.Store.GetDerived(ctx, objectsKey(ref.Digest)); err == nil {
		return raw, nil
	}
	pkg, err := s.parse(ctx, ref)
	if err != nil {
		return nil, err
	}
	s.keep(ctx, ref.Digest, pkg)
	var all bytes.Buffer
	err = format.WriteObjects(&all, pkg)
	return all.Bytes(), err
}

// objects is a blob that is read when somebody asks for a part of it.
type objects struct {
	once sync.Once
	load func() ([]byte, error)
	raw  []byte
	err  error
}

// ReadAt reads a part of the blob.
func (o *objects) ReadAt(p []byte, off int64) (int, error) {
	o.once.Do(func() { o.raw, o.err = o.load() })
	if o.err != nil {
		return 0, o.err
	}
	if off < 0 || off >= int64(len(o.raw)) {
		return 0, io.EOF
	}
	n := copy(p, o.raw[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
