package controller_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// fakeContent is an in-memory source of packages for tests: packages are resolved and
// read by reference, and lookups are counted.
type fakeContent struct {
	sourcetest.NoSignatures
	mu       sync.Mutex
	tags     map[string]oci.Digest
	packages map[oci.Digest]string
	resolved map[string]int
}

func newFakeContent() *fakeContent {
	return &fakeContent{tags: map[string]oci.Digest{}, packages: map[oci.Digest]string{}, resolved: map[string]int{}}
}

func (s *fakeContent) push(ref, stream string) oci.Digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := oci.DigestOf([]byte(stream))
	s.tags[ref], s.packages[d] = d, stream
	return d
}

func (s *fakeContent) lookups(ref string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resolved[ref]
}

var errNoSuchTag = errors.New("the registry has no such tag")

func (s *fakeContent) Resolve(_ context.Context, o fetch.Origin, _ time.Duration) (oci.Digest, error) {
	ref := o.Ref
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolved[ref.String()]++
	d, ok := s.tags[ref.String()]
	if !ok {
		return oci.Digest{}, fetch.ErrNotCached.New(errNoSuchTag, "%s", ref)
	}
	return d, nil
}

func (s *fakeContent) Read(_ context.Context, o fetch.Origin, d oci.Digest, _ bool) (*xpkg.Package, error) {
	s.mu.Lock()
	stream, ok := s.packages[d]
	s.mu.Unlock()
	if !ok {
		return nil, fetch.ErrNotCached.New(nil, "%s", o.Ref)
	}
	return xpkg.Read([]byte(stream), xpkg.ReadOptions{})
}

func (s *fakeContent) Named(_ context.Context, name string) (oci.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.tags[name]
	if !ok {
		return oci.Digest{}, fetch.ErrNotCached.New(nil, "%s", name)
	}
	return d, nil
}
