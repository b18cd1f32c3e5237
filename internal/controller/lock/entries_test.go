package lock

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// oneContent has one content, or none.
type oneContent struct {
	state.Content
	pkg *xpkg.Package
}

func (c oneContent) Read(context.Context, fetch.Origin, oci.Digest, bool) (*xpkg.Package, error) {
	if c.pkg == nil {
		return nil, errors.New("not in the cache")
	}
	return c.pkg, nil
}

// An entry keeps its dependencies while the content of its revision cannot be read. Whether the dependencies of a
// package are resolved does not matter.
func TestEntriesKeepDependencies(t *testing.T) {
	const image = "registry.example.com/fleet"
	readable := &xpkg.Package{Meta: xpkg.Meta{Kind: xpkg.Provider, DependsOn: []dependency.Dependency{{
		Package: "registry.example.com/boats", Constraint: ">=v1",
	}}}}
	entry := func(name, version string) []v1beta1.LockPackage {
		return []v1beta1.LockPackage{{
			Name: name, Source: image, Version: version,
			Dependencies:         []v1beta1.Dependency{{Package: "registry.example.com/rafts"}},
			OptionalDependencies: []v1beta1.Dependency{{Package: "registry.example.com/buoys"}},
		}}
	}
	for name, tc := range map[string]struct {
		content *xpkg.Package
		before  []v1beta1.LockPackage
		want    []string
	}{
		"the content is readable": {readable, entry("fleet-1", "v1.0.0"), []string{"registry.example.com/boats"}},
		"the content is not readable": {nil, entry("fleet-1", "v1.0.0"), []string{
			"registry.example.com/rafts", "registry.example.com/buoys",
		}},
		"the entry has another version":    {nil, entry("fleet-1", "v0.9.0"), nil},
		"the entry is of another revision": {nil, entry("fleet-0", "v1.0.0"), nil},
		"there is no entry":                {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rev := active(image+":v1.0.0", "", "", "")
			rev.SetName("fleet-1")
			rev.Spec.Digest, rev.Spec.SkipDependencyResolution = oci.DigestOf(nil).String(), true
			r := &Reconciler{Dependencies: &state.Dependencies{Content: oneContent{pkg: tc.content}}}
			all := r.entries(t.Context(), []v1.PackageRevision{rev}, tc.before)
			if len(all) != 1 {
				t.Fatalf("got %d entries, want 1", len(all))
			}
			var got []string
			for _, d := range append(all[0].Dependencies, all[0].OptionalDependencies...) {
				got = append(got, d.Package)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
