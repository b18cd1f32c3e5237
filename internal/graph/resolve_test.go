package graph

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// tags is a registry with these versions of repositories, which have no dependencies.
type tags map[string][]string

func (tags) Location(_ context.Context, repository oci.Reference) (string, error) {
	return repository.Name(), nil
}

func (r tags) Versions(_ context.Context, repository oci.Reference) (resolver.Versions, error) {
	return resolver.Versions{Tags: r[repository.Name()], From: repository}, nil
}

func (r tags) Metadata(_ context.Context, version oci.Reference) (resolver.Metadata, error) {
	if !slices.Contains(r[version.Name()], version.Tag) {
		return resolver.Metadata{}, oci.ErrManifestNotFound.New(nil, "%s does not exist", version)
	}
	return resolver.Metadata{Digest: oci.DigestOf([]byte(version.String())), Meta: xpkg.Meta{}}, nil
}

func (r tags) Verify(ctx context.Context, version oci.Reference, _ oci.Digest) (resolver.Metadata, error) {
	return r.Metadata(ctx, version)
}

func (tags) Status(context.Context, oci.Reference, []string) (*catalog.Status, error) {
	return nil, nil
}

// A new package that shares a missing dependency with pending packages is resolved without those whose dependencies
// contradict installed packages. Pending packages that contradict only each other stop each other, whichever is
// resolved first.
func TestPendingPackagesInConflictDoNotCount(t *testing.T) {
	r := &resolver.Resolver{Registry: tags{repository("queue"): {"v1.0.0", "v2.0.0"}, repository("shared"): {
		"v1.0.0", "v2.0.0",
	}}}
	config := func(name string, pending bool, needs map[string]string) Node {
		n := Node{Kind: "Configuration", Name: name, Pending: pending}
		n.Package = lockfile.Package{
			Repository: repository(name), Version: "v1.0.0", Digest: oci.DigestOf([]byte(name)), Kind: "Configuration",
		}
		for _, to := range slices.Sorted(maps.Keys(needs)) {
			n.Dependencies = append(n.Dependencies, dependency.Dependency{Package: repository(to), Constraint: needs[to]})
		}
		return n
	}
	queue := Node{Kind: "Provider", Name: "queue", AutoInstalled: true}
	queue.Package = lockfile.Package{
		Repository: repository("queue"), Version: "v1.0.0", Digest: oci.DigestOf([]byte("queue")), Kind: "Provider",
	}
	first := config("first", false, map[string]string{"queue": "<v2"})
	broken := config("broken", true, map[string]string{"queue": ">=v2", "shared": ">=v1"})
	for name, tc := range map[string]struct {
		others []Node
		needs  map[string]string
		want   string // the version of shared; "" for a conflict
	}{
		"no conflict":   {[]Node{queue, first}, map[string]string{"shared": "<v2"}, "v1.0.0"},
		"a pending one": {[]Node{queue, first, broken}, map[string]string{"shared": "<v2"}, "v1.0.0"},
		"an installed one": {
			[]Node{queue, first, config("broken", false, map[string]string{"queue": ">=v2", "shared": ">=v1"})},
			map[string]string{"shared": "<v2"}, "",
		},
		"its own": {[]Node{queue, first, broken}, map[string]string{"queue": ">=v2", "shared": "<v2"}, ""},
		"with a pending one": {
			[]Node{config("other", true, map[string]string{"shared": ">=v2"})}, map[string]string{"shared": "<v2"}, "",
		},
		"of two pending ones": {[]Node{
			config("a", true, map[string]string{"shared": ">=v2"}), config("b", true, map[string]string{"shared": "<v2"}),
		}, map[string]string{"shared": "<v2"}, ""},
		"of pending ones and more": {
			[]Node{queue, first, broken, config("other", true, map[string]string{"shared": ">=v2"})},
			map[string]string{"shared": "<v2"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := New(append(tc.others, config("new", true, tc.needs)), nil)
			_, got, err := g.Resolve(t.Context(), r, "Configuration", "new", None)
			if err != nil && !isConflict(err) {
				t.Fatal(err)
			}
			shared, _ := got.Find(repository("shared"))
			if (err == nil) != (tc.want != "") || err == nil && shared.Version != tc.want {
				t.Errorf("got %q, %v, want %q", shared.Version, err, tc.want)
			}
		})
	}
}
