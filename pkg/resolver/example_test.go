package resolver_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// memory is a registry in memory: repository, tag, dependencies.
type memory map[string]map[string][]dependency.Dependency

var errNotFound = errcode.Code{Name: "ExampleNotFound", Class: errcode.NotFound}

func (m memory) Location(_ context.Context, repository oci.Reference) (string, error) {
	return repository.Name(), nil
}

func (m memory) Versions(_ context.Context, repository oci.Reference) (resolver.Versions, error) {
	return resolver.Versions{Tags: slices.Sorted(maps.Keys(m[repository.Name()])), From: repository}, nil
}

func (m memory) Metadata(_ context.Context, version oci.Reference) (resolver.Metadata, error) {
	deps, ok := m[version.Name()][version.Tag]
	if !ok {
		return resolver.Metadata{}, errNotFound.New(nil, "there is no %s", version)
	}
	meta := xpkg.Meta{Kind: xpkg.Configuration, Name: version.RepositoryPath(), DependsOn: deps}
	return resolver.Metadata{Digest: oci.DigestOf([]byte(version.String())), Meta: meta}, nil
}

func (memory) Status(context.Context, oci.Reference, []string) (*catalog.Status, error) {
	return nil, nil
}

func (m memory) Verify(ctx context.Context, version oci.Reference, _ oci.Digest) (resolver.Metadata, error) {
	return m.Metadata(ctx, version)
}

func ExampleResolver() {
	registry := memory{
		"example.org/platform": {"v1.0.0": {{Package: "example.org/network", Constraint: ">=v1.0.0, <v2"}}},
		"example.org/network":  {"v1.0.0": nil, "v1.1.0": nil, "v2.0.0": nil},
	}
	r := resolver.Resolver{Registry: registry}
	result, err := r.Resolve(context.Background(), resolver.Request{
		Roots: []dependency.Root{{Package: "example.org/platform", Constraint: "*"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range result.Packages {
		fmt.Println(p.Repository, p.Version, result.Why[p.Repository])
	}
	// Output:
	// example.org/network v1.1.0 [example.org/platform v1.0.0 needs >=v1.0.0, <v2]
	// example.org/platform v1.0.0 [you requested *]
}
