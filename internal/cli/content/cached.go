package content

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// CachedPackages returns the packages in the package cache that have a reference as a name. Packages that cannot be read are
// omitted.
func (s *LazySource) CachedPackages(ctx context.Context) ([]provide.Package, error) {
	source, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := s.cache.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []provide.Package
	for _, e := range entries {
		for _, name := range e.Names {
			ref, err := oci.ParseReference(name, oci.ParseOptions{})
			if err != nil {
				continue
			}
			pkg, err := source.Read(ctx, fetch.Plain(ref), e.Digest, false)
			if err != nil {
				continue
			}
			out = append(out, provide.Package{Repository: ref.Name(), Version: ref.Tag, Digest: e.Digest, Content: pkg})
		}
	}
	return out, nil
}

// Finder returns a finder for the providers of kinds that knows the packages in the package cache.
func (s *LazySource) Finder() *provide.Finder {
	var packages []provide.Package
	return &provide.Finder{
		Load: func(ctx context.Context) (_ []provide.Source, err error) {
			packages, err = s.CachedPackages(ctx)
			return []provide.Source{provide.Packages{All: packages, Name: "the package cache", Priority: cachePriority}}, err
		},
		Schemas: func(_ context.Context, kind dependency.KindRef, candidates []provide.Candidate) map[string]provide.Difference {
			return compareSchemas(packages, kind, candidates)
		},
	}
}

// compareSchemas compares the schemas of candidates whose content is at hand with the first candidate, by repository.
func compareSchemas(packages []provide.Package, kind dependency.KindRef, candidates []provide.Candidate) map[string]provide.Difference {
	contents := map[string]*xpkg.Package{}
	for _, p := range packages {
		contents[p.Repository+":"+p.Version] = p.Content
	}
	out := map[string]provide.Difference{}
	first := contents[candidates[0].Ref()]
	for _, c := range candidates {
		if other := contents[c.Ref()]; first != nil && other != nil {
			out[c.Repository] = provide.CompareSchemas(first, other, kind)
		}
	}
	return out
}

// cachePriority is the priority of the package cache, after all indexes.
const cachePriority = 1 << 20
