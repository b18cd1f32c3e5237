package resolver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// counted counts the requests to a registry.
type counted struct {
	memory
	metadata, lists atomic.Int64
}

func (c *counted) Versions(ctx context.Context, repository oci.Reference) (resolver.Versions, error) {
	c.lists.Add(1)
	return c.memory.Versions(ctx, repository)
}

func (c *counted) Metadata(ctx context.Context, version oci.Reference) (resolver.Metadata, error) {
	c.metadata.Add(1)
	return c.memory.Metadata(ctx, version)
}

// The number of requests depends on the number of packages, not on the number of their tags.
func TestManyTagsDoNotCostARequestEach(t *testing.T) {
	const tags = 50_000
	big := map[string][]dependency.Dependency{}
	for i := range tags {
		big[fmt.Sprintf("v%d.%d.0", i/100, i%100)] = []dependency.Dependency{{
			Package: "example.org/base", Constraint: "v1.0.0",
		}}
	}
	registry := &counted{memory: memory{
		"example.org/top":  {"v1.0.0": {{Package: "example.org/big", Constraint: ">=v0.0.0"}}},
		"example.org/big":  big,
		"example.org/base": {"v1.0.0": nil, "v2.0.0": nil},
	}}
	r := resolver.Resolver{Registry: registry}
	got, err := r.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{{
		Package: "example.org/top", Constraint: "*",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := got.Find("example.org/big"); p.Version != "v499.99.0" {
		t.Errorf("selected %s", p.Version)
	}
	if n := registry.metadata.Load(); n > 10 {
		t.Errorf("%d versions were read", n)
	}

	// No version of the package fits.
	registry.metadata.Store(0)
	_, err = r.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{
		{Package: "example.org/top", Constraint: "*"}, {Package: "example.org/base", Constraint: "v2.0.0"},
	}})
	if !errors.Is(err, resolver.ErrTooManyVersions) ||
		!strings.Contains(err.Error(), "none of the 1000 newest versions of example.org/big") {
		t.Errorf("got %v", err)
	}
	if n := registry.metadata.Load(); n > 1100 {
		t.Errorf("%d versions were read", n)
	}
}
