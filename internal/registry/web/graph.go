package web

import (
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// A treeNode is a package in the tree of dependencies.
type treeNode struct {
	Repository, Constraint string
	Optional               bool
	// Tag is the newest version that the constraint accepts; empty if there is none, or the package is not in the index.
	Tag, URL string
	// Known reports that the package is in the index.
	Known bool
	// Repeated reports that the dependencies are shown at the first place of the package.
	Repeated bool
	Children []*treeNode
}

// Limits of trees.
const (
	maxTreeNodes = 200
	maxTreeDepth = 20
)

// A treeBuilder builds a tree of dependencies.
type treeBuilder struct {
	view  View
	seen  map[string]bool
	count int
}

// dependencyTree returns the dependencies of a version, each at the newest version that its constraint accepts. It is
// not a solution: xpkg resolve solves all constraints together.
func dependencyTree(ctx context.Context, view View, at release) (*treeNode, error) {
	b := treeBuilder{view: view, seen: map[string]bool{at.Repository(): true}}
	root := &treeNode{Repository: at.Repository(), Tag: at.Tag, Known: true, URL: packageURL(at.Repository(), at.Tag)}
	return root, b.grow(ctx, root, metaDependencies(at.Version), 0)
}

func (b *treeBuilder) grow(ctx context.Context, n *treeNode, dependencies []dependency.Dependency, depth int) error {
	for _, d := range dependencies {
		if b.count++; b.count > maxTreeNodes || depth >= maxTreeDepth {
			return nil
		}
		child := &treeNode{Repository: d.Package, Constraint: d.Constraint, Optional: d.Optional}
		n.Children = append(n.Children, child)
		if err := b.visit(ctx, child, depth); err != nil {
			return err
		}
	}
	return nil
}

// visit sets the version of a node and its dependencies.
func (b *treeBuilder) visit(ctx context.Context, n *treeNode, depth int) error {
	p, history, err := b.view.Package(ctx, n.Repository)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	n.Known, n.URL = true, packageURL(n.Repository, "")
	var tags []string
	for _, v := range history.Versions {
		if !v.Status.Excludes() {
			tags = append(tags, v.Tag)
		}
	}
	accepted := version.ParseConstraint(n.Constraint).Filter(tags)
	if len(accepted) == 0 {
		return nil
	}
	n.Tag = accepted[0]
	if n.Tag != p.Latest {
		n.URL = packageURL(n.Repository, n.Tag)
	}
	if n.Repeated = b.seen[n.Repository]; n.Repeated {
		return nil
	}
	b.seen[n.Repository] = true
	for _, v := range history.Versions {
		if v.Tag == n.Tag {
			return b.grow(ctx, n, metaDependencies(v), depth+1)
		}
	}
	return nil
}
