package fetch

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

var _ resolver.Hints = (*Source)(nil)

// dependenciesKey returns the key of the dependencies that the version of a repository had in the last solution.
func dependenciesKey(repository string) store.DerivedKey {
	return store.DerivedKey{Digest: oci.DigestOf([]byte(repository)), Name: "dependencies", Version: 1}
}

// Dependencies implements [resolver.Hints] with the dependencies that the repository had in the last solution with any
// of its versions.
func (s *Source) Dependencies(ctx context.Context, repository, _ string) []dependency.Dependency {
	raw, err := s.opts.Store.GetDerived(ctx, dependenciesKey(repository))
	var out []dependency.Dependency
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// Remember implements [resolver.Hints]. It writes in the background; without a writable store, nothing is recorded.
func (s *Source) Remember(ctx context.Context, packages []lockfile.Package) {
	packages = slices.Clone(packages)
	s.writes.Go(func() {
		ctx := context.WithoutCancel(ctx)
		for _, p := range packages {
			required := dependency.Required(p.Dependencies)
			if slices.Equal(required, s.Dependencies(ctx, p.Repository, "")) {
				continue
			}
			if raw, err := json.Marshal(required); err == nil {
				_ = s.opts.Store.PutDerived(ctx, dependenciesKey(p.Repository), raw)
			}
		}
	})
}
