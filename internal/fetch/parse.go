package fetch

import (
	"context"
	"errors"
	"io"
	"runtime/debug"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// read returns a package from the store: from its index, otherwise from its YAML. Concurrent callers share the
// parsing of one package.
func (s *Source) read(ctx context.Context, o Origin, d oci.Digest) (*xpkg.Package, error) {
	if pkg, ok := s.indexed(ctx, o, d); ok {
		return pkg, nil
	}
	leave, err := s.parsing.Lock(ctx, d)
	if err != nil {
		return nil, err
	}
	defer leave()
	if pkg, ok := s.indexed(ctx, o, d); ok {
		return pkg, nil
	}
	return s.parse(ctx, o, d)
}

// parse reads a package from its YAML and stores the result. The returned package holds neither the YAML nor the
// objects if they could be stored.
func (s *Source) parse(ctx context.Context, o Origin, d oci.Digest) (*xpkg.Package, error) {
	room := &room{memory: s.memory, all: s.opts.ParseBytes}
	defer room.leave()
	defer func() {
		if room.taken >= muchMemory {
			// Parsing is rare and needs much memory, which the Go runtime would otherwise keep for minutes.
			debug.FreeOSMemory()
		}
	}()
	if s.parseInParts(ctx, o, d, room) == nil {
		if small, ok := s.indexed(ctx, o, d); ok {
			return small, nil
		}
	}
	pkg, err := s.parseWithin(ctx, o, d, room)
	if err != nil {
		return nil, err
	}
	if err := s.keep(ctx, o, d, pkg); err != nil {
		return pkg, nil // Without a writable cache, packages are parsed again.
	}
	small, ok := s.indexed(ctx, o, d)
	if !ok {
		return pkg, nil
	}
	small.Findings = pkg.Findings
	return small, nil
}

// muchMemory is the size of the YAML in bytes from which memory is returned to the system after parsing.
const muchMemory = 16 << 20

// partsMemory is the memory for the YAML of a package that is parsed in parts, in bytes.
const partsMemory = 16 << 20

// mostCompression is the ratio up to which YAML is usually compressed. A smaller layer is not opened to find its size.
const mostCompression = 64

// errNotInParts is the reason why a package has to be parsed as a whole.
var errNotInParts = errors.New("the package is not suited for parsing in parts")

// parseInParts parses a package without findings while its YAML is decompressed, and stores the result, so that only a
// part of the package is ever in memory. It fails for a package with a finding, which parseWithin reads again with the
// texts for its messages, and for a small one.
func (s *Source) parseInParts(ctx context.Context, o Origin, d oci.Digest, room *room) error {
	if o.Lenient {
		return errNotInParts // Its findings are part of the result.
	}
	artifact, manifest, err := s.manifest(ctx, d)
	if err != nil {
		return err
	}
	if manifest.Base == nil || manifest.Base.Size < s.opts.PartsFrom/mostCompression {
		return errNotInParts
	}
	var pkg *xpkg.Package
	var texts *store.DerivedWriter
	defer func() {
		if texts != nil {
			_ = texts.Discard() // A temporary file that stays is removed when the store is opened.
		}
	}()
	err = oci.StreamPackageYAML(ctx, artifact, manifest, s.opts.Limits, func(size int64, r io.Reader) (err error) {
		if size < s.opts.PartsFrom {
			return errNotInParts
		}
		if err := room.take(ctx, partsMemory); err != nil {
			return err
		}
		if texts, err = s.opts.Store.NewDerived(ctx, objectsKey(d, o.Lenient), size); err != nil {
			return err
		}
		pkg, err = xpkg.ReadFrom(r, texts, s.readOptions(o, d))
		return err
	})
	switch {
	case err != nil:
		return err
	case len(pkg.Findings) > 0:
		return errNotInParts
	}
	if err := s.check(o, pkg); err != nil {
		return err
	}
	x, err := index.New(pkg)
	switch {
	case err != nil:
		return err
	case x.Size() != texts.Size():
		return errNotInParts
	}
	if err := texts.Commit(); err != nil {
		return err
	}
	return s.keepIndex(ctx, o, d, x)
}

// parseWithin reads a package from the YAML in the store and checks all of it as the API server does: a package that
// cannot be installed completely is refused before any write (packages guide, "Provider Packages").
func (s *Source) parseWithin(ctx context.Context, o Origin, d oci.Digest, room *room) (*xpkg.Package, error) {
	artifact, manifest, err := s.manifest(ctx, d)
	if err != nil {
		return nil, err
	}
	text, err := s.stream(ctx, artifact, manifest, room)
	if err != nil {
		return nil, err
	}
	pkg, err := xpkg.Read(text, s.readOptions(o, d))
	if err != nil {
		return nil, err
	}
	return pkg, s.check(o, pkg)
}

// manifest returns the image of a package in the store.
func (s *Source) manifest(ctx context.Context, d oci.Digest) (oci.Artifact, oci.Manifest, error) {
	artifact, err := s.opts.Store.Artifact(ctx, d, s.opts.Limits)
	if err != nil {
		return nil, oci.Manifest{}, err
	}
	manifest, err := oci.FindManifest(ctx, artifact, oci.Platform{}, s.opts.Limits)
	return artifact, manifest, err
}

func (s *Source) readOptions(o Origin, d oci.Digest) xpkg.ReadOptions {
	return xpkg.ReadOptions{File: o.at(d), Policy: o.policy(), Limits: s.opts.FormatLimits}
}

// check returns an error for a package that the API server would not accept completely.
func (s *Source) check(o Origin, pkg *xpkg.Package) error {
	return xpkg.Failed(check.Package(pkg, check.Options{Policy: o.policy(), CRDs: crdvalidation.ValidateCRD}))
}

// stream returns the stream of a package, within a share of the memory for parsing.
func (s *Source) stream(ctx context.Context, a oci.Artifact, m oci.Manifest, room *room) ([]byte, error) {
	return packagestream.Read(ctx, a, m, packagestream.Options{
		Limits: s.opts.Limits, Format: s.opts.FormatLimits, Reserve: func(bytes int64) error { return room.take(ctx, bytes) },
	})
}
