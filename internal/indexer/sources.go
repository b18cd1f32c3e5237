package indexer

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// repository is a repository of a source.
type repository struct {
	name string
	// listed means that a registry listed the repository. Its content that is no package is left out then; in a repository
	// that the configuration names, it is an error.
	listed bool
}

// sources returns the repositories of the sources, sorted, and the contents of the indexes among them.
func (b *Builder) sources(ctx context.Context, sources []catalog.Source) ([]repository, []catalog.Catalog, error) {
	listed := map[string]bool{}
	var indexes []catalog.Catalog
	for _, s := range sources {
		switch s.Kind {
		case catalog.SourceRepositories:
			for _, name := range s.Repositories {
				listed[oci.RepositoryName(name)] = false
			}
		case catalog.SourceRegistry:
			found, err := b.list(ctx, s.Location)
			if err != nil {
				return nil, nil, err
			}
			for _, name := range found {
				if _, known := listed[oci.RepositoryName(name)]; !known {
					listed[oci.RepositoryName(name)] = true
				}
			}
		case catalog.SourceIndex:
			c, err := b.index(ctx, s.Location)
			if err != nil {
				return nil, nil, err
			}
			indexes = append(indexes, c)
		}
	}
	var repositories []repository
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		repositories = append(repositories, repository{name, listed[name]})
	}
	return repositories, indexes, nil
}

// list returns the repositories of a registry, or below a prefix in it.
func (b *Builder) list(ctx context.Context, location string) ([]string, error) {
	registry, prefix, _ := strings.Cut(location, "/")
	names, err := b.opts.Remote.Repositories(ctx, registry, prefix)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range names {
		out = append(out, registry+"/"+n)
	}
	return out, nil
}

// index reads another index.
func (b *Builder) index(ctx context.Context, location string) (catalog.Catalog, error) {
	ref, err := oci.ParseReference(location, oci.ParseOptions{})
	if err != nil {
		return catalog.Catalog{}, err
	}
	client := Client{Remote: b.opts.Remote, Store: b.opts.Store, Keys: b.opts.Keys}
	r, err := client.Open(ctx, ref)
	if err != nil {
		return catalog.Catalog{}, err
	}
	return r.Catalog()
}
