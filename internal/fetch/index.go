package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// derivedVersion is the version of stored results. A conversion of the first generation determines the stream of a
// package, and therefore its results.
const derivedVersion = index.Version<<8 | firstgen.ConversionVersion

// indexKey and objectsKey return the keys of the index of a package and of its objects as canonical JSON. A
// package that was read with the lenient policy has separate entries.
func indexKey(d oci.Digest, lenient bool) store.DerivedKey {
	if lenient {
		return store.DerivedKey{Digest: d, Name: "lenient-index", Version: derivedVersion}
	}
	return store.DerivedKey{Digest: d, Name: "index", Version: derivedVersion}
}

func objectsKey(d oci.Digest, lenient bool) store.DerivedKey {
	if lenient {
		return store.DerivedKey{Digest: d, Name: "lenient-objects", Version: derivedVersion}
	}
	return store.DerivedKey{Digest: d, Name: "objects", Version: derivedVersion}
}

// indexed returns a package from its stored index. With a damaged index, the YAML is read again.
func (s *Source) indexed(ctx context.Context, o Origin, d oci.Digest) (*xpkg.Package, bool) {
	raw, err := s.opts.Store.GetDerived(ctx, indexKey(d, o.Lenient))
	if err != nil {
		return nil, false
	}
	// The objects may have been evicted before the index.
	kept, err := s.opts.Store.OpenDerived(ctx, objectsKey(d, o.Lenient))
	if err != nil || kept.Close() != nil {
		return nil, false
	}
	x, err := index.Decode(raw)
	if err != nil {
		return nil, false
	}
	x.File = o.at(d) // The same content can have other names as well.
	pkg, err := x.Package(&objects{source: s, ctx: context.WithoutCancel(ctx), origin: o, digest: d}, s.opts.FormatLimits)
	if err == nil && o.Lenient {
		pkg.Findings, err = s.accepted(ctx, o, d)
	}
	return pkg, err == nil
}

// keep stores the index and the objects of a package.
func (s *Source) keep(ctx context.Context, o Origin, d oci.Digest, pkg *xpkg.Package) error {
	x, err := index.New(pkg)
	if err != nil {
		return err
	}
	texts, err := index.Blob(pkg)
	if err != nil {
		return err
	}
	if err := s.opts.Store.PutDerived(ctx, objectsKey(d, o.Lenient), texts...); err != nil {
		return err
	}
	if o.Lenient {
		if err := s.keepAccepted(ctx, d, pkg); err != nil {
			return err
		}
	}
	return s.keepIndex(ctx, o, d, x)
}

// keepIndex stores the index of a package. It is written last, so that the objects of an index always exist.
func (s *Source) keepIndex(ctx context.Context, o Origin, d oci.Digest, x *index.Index) error {
	return s.opts.Store.PutDerived(ctx, indexKey(d, o.Lenient), index.Encode(x))
}

// objects reads the stored objects of a package on demand. It holds no open file and no memory between reads. It is
// an [index.Repairer]: readers verify objects, and have damaged or evicted ones stored again.
type objects struct {
	source *Source
	ctx    context.Context // io.Reader has no context parameter.
	origin Origin
	digest oci.Digest

	mu sync.Mutex
	// held contains the objects if they could not be stored.
	held []byte
}

// ReadAt implements [io.ReaderAt].
func (b *objects) ReadAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	held := b.held
	b.mu.Unlock()
	if held != nil {
		return bytes.NewReader(held).ReadAt(p, off)
	}
	kept, err := b.source.opts.Store.OpenDerived(b.ctx, objectsKey(b.digest, b.origin.Lenient))
	if err != nil {
		return 0, err
	}
	n, err := kept.ReadAt(p, off)
	if cerr := kept.Close(); err == nil || errors.Is(err, io.EOF) && cerr != nil {
		err = cerr
	}
	return n, err
}

// Repair implements [index.Repairer].
func (b *objects) Repair() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	store := b.source.opts.Store
	if _, err := store.GetDerived(b.ctx, objectsKey(b.digest, b.origin.Lenient)); err == nil {
		return nil // Another process has stored it.
	}
	room := &room{memory: b.source.memory, all: b.source.opts.ParseBytes}
	defer room.leave()
	if b.source.parseInParts(b.ctx, b.origin, b.digest, room) == nil {
		return nil
	}
	pkg, err := b.source.parseWithin(b.ctx, b.origin, b.digest, room)
	if err != nil {
		return err
	}
	if b.source.keep(b.ctx, b.origin, b.digest, pkg) == nil {
		return nil
	}
	texts, err := index.Blob(pkg)
	if err != nil {
		return err
	}
	b.held = bytes.Join(texts, nil)
	return nil
}
