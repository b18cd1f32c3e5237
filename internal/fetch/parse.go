package fetch

import (
	"context"
	"runtime/debug"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
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
	if room.taken >= muchMemory {
		// Parsing is rare and needs much memory, which the Go runtime would otherwise keep for minutes.
		debug.FreeOSMemory()
	}
	return small, nil
}

// muchMemory is the size of the YAML in bytes from which memory is returned to the system after parsing.
const muchMemory = 16 << 20

// parseWithin reads a package from the YAML in the store and checks all of it as the API server does: a package that
// cannot be installed completely is refused before any write (packages guide, "Provider Packages").
func (s *Source) parseWithin(ctx context.Context, o Origin, d oci.Digest, room *room) (*xpkg.Package, error) {
	store, limits := s.opts.Store, s.opts.Limits
	artifact, err := store.Artifact(ctx, d, limits)
	if err != nil {
		return nil, err
	}
	manifest, err := oci.FindManifest(ctx, artifact, oci.Platform{}, limits)
	if err != nil {
		return nil, err
	}
	text, err := s.stream(ctx, artifact, manifest, room)
	if err != nil {
		return nil, err
	}
	pkg, err := xpkg.Read(text, xpkg.ReadOptions{File: o.at(d), Policy: o.policy(), Limits: s.opts.FormatLimits})
	if err != nil {
		return nil, err
	}
	findings := check.Package(pkg, check.Options{Policy: o.policy(), CRDs: crdvalidation.ValidateCRD})
	return pkg, xpkg.Failed(findings)
}

// stream returns the stream of a package, within a share of the memory for parsing.
func (s *Source) stream(ctx context.Context, a oci.Artifact, m oci.Manifest, room *room) ([]byte, error) {
	return packagestream.Read(ctx, a, m, packagestream.Options{
		Limits: s.opts.Limits, Format: s.opts.FormatLimits, Reserve: func(bytes int64) error { return room.take(ctx, bytes) },
	})
}
