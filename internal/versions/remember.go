package versions

import (
	"context"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// rememberingRegistry keeps the results of a registry, for an operation that resolves almost the same packages many
// times. It keeps no errors.
type rememberingRegistry struct {
	resolver.Registry
	locations results[string]
	lists     results[resolver.Versions]
	metadata  results[resolver.Metadata]
}

// Location implements [resolver.Registry].
func (r *rememberingRegistry) Location(ctx context.Context, repository oci.Reference) (string, error) {
	return r.locations.get(repository.String(), func() (string, error) { return r.Registry.Location(ctx, repository) })
}

// Versions implements [resolver.Registry].
func (r *rememberingRegistry) Versions(ctx context.Context, repository oci.Reference) (resolver.Versions, error) {
	return r.lists.get(
		repository.String(), func() (resolver.Versions, error) { return r.Registry.Versions(ctx, repository) },
	)
}

// Metadata implements [resolver.Registry].
func (r *rememberingRegistry) Metadata(ctx context.Context, version oci.Reference) (resolver.Metadata, error) {
	return r.metadata.get(version.String(), func() (resolver.Metadata, error) { return r.Registry.Metadata(ctx, version) })
}

// results holds the results of successful requests.
type results[T any] struct {
	mu    sync.Mutex
	known map[string]T
}

// get returns the result for a key, which it requests if it is not known.
func (r *results[T]) get(key string, request func() (T, error)) (T, error) {
	r.mu.Lock()
	known, ok := r.known[key]
	r.mu.Unlock()
	if ok {
		return known, nil
	}
	result, err := request()
	if err != nil {
		return result, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[string]T{}
	}
	r.known[key] = result
	return result, nil
}
