package state

import (
	"context"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A ContentReader returns the content of packages that do not work yet. A kind that the API server does not serve can
// only come from one of them.
type ContentReader interface {
	// Requires returns the kinds that the content of a package requires.
	Requires(ctx context.Context, n graph.Node) []dependency.KindRef
	// Defines reports whether the content of a package defines a kind.
	Defines(ctx context.Context, n graph.Node, kind dependency.KindRef) bool
}

// LinkKinds adds to packages the dependencies on the packages that define their required kinds, as far as a package has
// none for a kind and exactly one of the packages defines it. These dependencies are not recorded: the objects of the
// package may be refused.
func LinkKinds(ctx context.Context, nodes []graph.Node, contents ContentReader) []graph.Node {
	out := slices.Clone(nodes)
	for i := range out {
		n := &out[i]
		if n.SkipDependencies {
			continue
		}
		for _, kind := range contents.Requires(ctx, *n) {
			if len(recordedFor(kind, n.Dependencies)) > 0 || contents.Defines(ctx, *n, kind) {
				continue
			}
			if from := definingRepositories(ctx, nodes, *n, kind, contents); len(from) == 1 {
				n.Dependencies = append(slices.Clone(n.Dependencies), dependency.Dependency{Package: from[0], CRD: kind.String()})
			}
		}
	}
	return out
}

// definingRepositories returns the repositories of the packages, other than one of them, that define a kind.
func definingRepositories(
	ctx context.Context, nodes []graph.Node, except graph.Node, kind dependency.KindRef, contents ContentReader,
) []string {
	var out []string
	for _, n := range nodes {
		if n.Repository != except.Repository && !slices.Contains(out, n.Repository) && contents.Defines(ctx, n, kind) {
			out = append(out, n.Repository)
		}
	}
	return out
}

// LinkedKinds returns the dependencies of a package on those packages that define missing kinds, and the kinds that
// none defines.
func LinkedKinds(
	n graph.Node, missing []dependency.KindRef,
) (linked []dependency.Dependency, rest []dependency.KindRef) {
	for _, kind := range missing {
		if found := recordedFor(kind, n.Dependencies); len(found) > 0 {
			linked = append(linked, found...)
		} else {
			rest = append(rest, kind)
		}
	}
	return linked, rest
}

// KnownContents returns the content of packages by their repositories, and of all others from another reader.
type KnownContents struct {
	ContentReader
	Known map[string]*xpkg.Package
}

// Requires implements [ContentReader].
func (c KnownContents) Requires(ctx context.Context, n graph.Node) []dependency.KindRef {
	if pkg := c.Known[n.Repository]; pkg != nil {
		return pkg.Meta.Kinds
	}
	return c.ContentReader.Requires(ctx, n)
}

// Defines implements [ContentReader].
func (c KnownContents) Defines(ctx context.Context, n graph.Node, kind dependency.KindRef) bool {
	if pkg := c.Known[n.Repository]; pkg != nil {
		return provide.DefinesKind(pkg, kind)
	}
	return c.ContentReader.Defines(ctx, n, kind)
}
