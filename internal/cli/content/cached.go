package content

import (
	"context"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// CachedPackages returns the packages in the package cache whose repository is known: those that have a reference as a
// name, and those that were downloaded. Packages that cannot be read are omitted.
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
		var refs []oci.Reference
		for _, name := range e.Names {
			if ref, err := oci.ParseReference(name, oci.ParseOptions{}); err == nil {
				refs = append(refs, ref)
			}
		}
		added := len(refs)
		for i, ref := range append(refs, source.Origins(ctx, e.Digest)...) {
			if slices.Contains(refs, ref) && i >= added {
				continue
			}
			if pkg, err := source.Read(ctx, fetch.Plain(ref), e.Digest, false); err == nil {
				out = append(out, provide.Package{
					Repository: ref.Name(), Version: ref.Tag, Digest: e.Digest, Content: pkg, Downloaded: i >= added,
				})
			}
		}
	}
	return out, nil
}

// KindIndexFlag selects the indexes in which packages that provide kinds are found.
type KindIndexFlag struct {
	Index []string `sep:" " placeholder:"REF[,PRIORITY]" env:"XPKG_INDEX" config:"" help:"Index in which packages that provide required kinds are found; repeat it for several. The index with the highest priority comes first; the default is 0."`
	IndexKeyFlag
}

// Finder returns a finder for the providers of kinds that knows the packages of indexes, and those in the package
// cache.
func (s *LazySource) Finder(indexes KindIndexFlag) *provide.Finder {
	var packages []provide.Package
	return &provide.Finder{
		Unindexed: len(indexes.Index) == 0,
		Load: func(ctx context.Context) ([]provide.Source, error) {
			var err error
			if packages, err = s.CachedPackages(ctx); err != nil {
				return nil, err
			}
			out, err := s.openIndexes(ctx, indexes, false)
			return append(out, provide.Packages{All: packages, Name: CacheSource, Priority: cachePriority}), err
		},
		Schemas: func(
			_ context.Context, kind dependency.KindRef, candidates []provide.Candidate,
		) map[string]provide.Difference {
			return compareSchemas(packages, kind, candidates)
		},
	}
}

// IndexFinder returns a finder for the providers of kinds that knows only the packages of indexes.
func (s *LazySource) IndexFinder(indexes KindIndexFlag) *provide.Finder {
	return &provide.Finder{Unindexed: len(indexes.Index) == 0, Load: func(ctx context.Context) ([]provide.Source, error) {
		if _, err := s.Open(ctx); err != nil {
			return nil, err
		}
		return s.openIndexes(ctx, indexes, false)
	}}
}

// openIndexes returns the sources of indexes. If offline is true, it sends no request, and uses the state that was
// fetched last.
func (s *LazySource) openIndexes(ctx context.Context, indexes KindIndexFlag, offline bool) ([]provide.Source, error) {
	if len(indexes.Index) == 0 {
		return nil, nil
	}
	keys, err := indexes.Keys(ctx)
	if err != nil {
		return nil, err
	}
	registries, err := flags.RegistryFlags{TrustFlags: s.Flags.TrustFlags}.Options(ctx, oci.Limits{}, nil)
	if err != nil {
		return nil, err
	}
	access := remote.New(registries)
	defer access.Close()
	return OpenIndexes(
		ctx, &indexer.Client{Remote: access, Store: s.cache.Store(), Keys: keys, Offline: offline}, indexes.Index,
	)
}

// compareSchemas compares the schemas of candidates whose content is at hand with the first candidate, by repository.
func compareSchemas(
	packages []provide.Package, kind dependency.KindRef, candidates []provide.Candidate,
) map[string]provide.Difference {
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

// CacheSource is the name of the package cache as the source of candidates.
const CacheSource = "the package cache"

// cachePriority is the priority of the package cache, after all indexes.
const cachePriority = 1 << 20
