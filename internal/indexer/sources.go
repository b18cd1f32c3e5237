package indexer

import (
	"context"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// sources returns the repositories of the sources, sorted, and the contents of the indexes among them.
func (b *Builder) sources(ctx context.Context, sources []catalog.Source) ([]string, []catalog.Catalog, error) {
	var repositories []string
	var indexes []catalog.Catalog
	for _, s := range sources {
		switch s.Kind {
		case catalog.SourceRepositories:
			repositories = append(repositories, s.Repositories...)
		case catalog.SourceRegistry:
			found, err := b.list(ctx, s.Location)
			if err != nil {
				return nil, nil, err
			}
			repositories = append(repositories, found...)
		case catalog.SourceIndex:
			c, err := b.index(ctx, s.Location)
			if err != nil {
				return nil, nil, err
			}
			indexes = append(indexes, c)
		}
	}
	for i, r := range repositories {
		repositories[i] = oci.RepositoryName(r)
	}
	slices.Sort(repositories)
	return slices.Compact(repositories), indexes, nil
}

// list returns the repositories of a registry, or below a prefix in it. It leaves out repositories of indexes: those
// whose tags include none of a package are listed as empty packages otherwise.
func (b *Builder) list(ctx context.Context, location string) ([]string, error) {
	registry, prefix, _ := strings.Cut(location, "/")
	names, err := b.opts.Remote.Repositories(ctx, registry, prefix)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range names {
		if !b.isIndex(ctx, registry+"/"+n) {
			out = append(out, registry+"/"+n)
		}
	}
	return out, nil
}

// isIndex reports whether a repository has the usual name of an index.
func (b *Builder) isIndex(_ context.Context, name string) bool {
	return name[strings.LastIndexByte(name, '/')+1:] == "index"
}

// index reads another index.
func (b *Builder) index(ctx context.Context, location string) (catalog.Catalog, error) {
	ref, err := oci.ParseReference(location, oci.ParseOptions{})
	if err != nil {
		return catalog.Catalog{}, err
	}
	client := Client{Remote: b.opts.Remote, Store: b.opts.Store}
	r, err := client.Open(ctx, ref)
	if err != nil {
		return catalog.Catalog{}, err
	}
	return r.Catalog()
}
