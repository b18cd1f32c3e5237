package content

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// Dependencies implements [fetch.Lookup]: the dependencies in the last solution, or else those in the indexes of the
// user, in the state that was fetched last.
func (s *LazySource) Dependencies(ctx context.Context, repository, constraint string) []dependency.Dependency {
	known, err := withSource(ctx, s, func(c *fetch.Source) ([]dependency.Dependency, error) {
		return c.Dependencies(ctx, repository, constraint), nil
	})
	if err != nil || known != nil {
		return known
	}
	s.once.Do(func() {
		// Without an index, there are fewer hints.
		s.predicted, _ = s.openIndexes(context.WithoutCancel(ctx), s.Indexes, true)
	})
	for _, index := range s.predicted {
		if c, ok := index.(provide.Catalog); ok && c.History(repository) != nil {
			return c.Dependencies(repository, constraint)
		}
	}
	return nil
}

// Remember implements [fetch.Lookup].
func (s *LazySource) Remember(ctx context.Context, packages []lockfile.Package) {
	_, _ = withSource(ctx, s, func(c *fetch.Source) (struct{}, error) {
		c.Remember(ctx, packages)
		return struct{}{}, nil
	})
}
