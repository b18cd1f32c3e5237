package dependencies

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// treeNode is a package in the tree of a resolution.
type treeNode struct {
	Package string `json:"package"`
	Version string `json:"version,omitempty"`
	// Digest and Kind are empty for an optional dependency that is not in the tree.
	Digest string    `json:"digest,omitempty"`
	Kind   xpkg.Kind `json:"kind,omitempty"`
	// Constraint is the constraint of the parent.
	Constraint string `json:"constraint,omitempty"`
	// Kinds are the kinds for which the parent needs the package.
	Kinds []string `json:"kinds,omitempty"`
	// RequiredBy names the package of a folder that requires a root.
	RequiredBy   string      `json:"requiredBy,omitempty"`
	Dependencies []*treeNode `json:"dependencies,omitempty"`
	// Seen reports whether the dependencies are already shown elsewhere in the tree.
	Seen bool `json:"seen,omitempty"`
	// Optional reports whether the dependency of the parent is optional.
	Optional bool `json:"optional,omitempty"`
}

// closureTree returns the trees of the roots of a resolution.
func closureTree(f lockfile.File) []*treeNode {
	seen := map[string]bool{}
	out := []*treeNode{}
	for _, r := range requests(f.Roots) {
		n := growOptional(f, r.Package, r.Constraint)
		if !r.Optional {
			n = growClosure(f, r.Package, r.Constraint, seen)
		}
		n.RequiredBy, n.Kinds = r.by, r.Kinds
		out = append(out, n)
	}
	return out
}

// request is all roots of a requester with the same package.
type request struct {
	by string
	dependency.Need
}

// requests returns roots as one request for each requester and package, in the order of the roots.
func requests(roots []dependency.Root) []request {
	var by []string
	all := map[string][]dependency.Dependency{}
	for _, r := range roots {
		if !slices.Contains(by, r.By) {
			by = append(by, r.By)
		}
		all[r.By] = append(all[r.By], dependency.Dependency{
			Package: r.Package, Constraint: r.Constraint, Optional: r.Optional, CRD: r.CRD,
		})
	}
	var out []request
	for _, requester := range by {
		for _, n := range dependency.Needs(all[requester]) {
			out = append(out, request{requester, n})
		}
	}
	return out
}

func growClosure(f lockfile.File, repository, constraint string, seen map[string]bool) *treeNode {
	p, _ := f.Find(repository)
	n := &treeNode{
		Package: repository, Version: p.Version, Digest: p.Digest.String(), Kind: p.Kind, Constraint: constraint,
	}
	if n.Seen = seen[repository] && len(p.Dependencies) > 0; n.Seen {
		return n
	}
	seen[repository] = true
	for _, d := range dependency.Needs(p.Dependencies) {
		if d.Optional {
			n.Dependencies = append(n.Dependencies, growOptional(f, d.Package, d.Constraint))
			continue
		}
		child := growClosure(f, d.Package, d.Constraint, seen)
		child.Kinds = d.Kinds
		n.Dependencies = append(n.Dependencies, child)
	}
	return n
}

// growOptional adds an optional dependency. If it is part of the resolution, it is shown completely below a package
// that requires it.
func growOptional(f lockfile.File, repository, constraint string) *treeNode {
	n := &treeNode{Package: repository, Constraint: constraint, Optional: true}
	if p, ok := f.Find(repository); ok {
		n.Version, n.Digest, n.Kind = p.Version, p.Digest.String(), p.Kind
	}
	return n
}

// writeClosureTree writes the trees.
func writeClosureTree(w io.Writer, f lockfile.File, nodes []*treeNode) {
	if len(nodes) == 0 {
		fmt.Fprintln(w, "No packages.")
	}
	for _, n := range nodes {
		n.write(w, f, "", "")
	}
}

func (n *treeNode) write(w io.Writer, f lockfile.File, first, rest string) {
	p, there := f.Find(n.Package)
	line := strings.TrimSpace(fmt.Sprintf(
		"%s/%s  %s  %s", strings.ToLower(string(n.Kind)), n.Package, p.ShortVersion(), n.Constraint,
	))
	switch {
	case n.Optional && !there:
		line = n.Package + "  " + n.Constraint + "  (optional, not installed)"
	case n.Optional:
		line += "  (optional)"
	}
	if len(n.Kinds) > 0 {
		line += "  " + dependency.Need{Kinds: n.Kinds}.Purpose()
	}
	if n.RequiredBy != "" {
		line += "  (for " + n.RequiredBy + ")"
	}
	if n.Seen {
		line += "  (see above)"
	}
	fmt.Fprintf(w, "%s%s\n", first, terminal.Safe(line))
	for i, need := range n.Dependencies {
		if i == len(n.Dependencies)-1 {
			need.write(w, f, rest+"└─ ", rest+"   ")
		} else {
			need.write(w, f, rest+"├─ ", rest+"│  ")
		}
	}
}

// appendNames appends the references of a package and of its dependencies that are not shown elsewhere.
func (n *treeNode) appendNames(names []string) []string {
	if n.Seen || n.Digest == "" {
		return names
	}
	names = append(names, n.Package+"@"+n.Digest)
	for _, d := range n.Dependencies {
		names = d.appendNames(names)
	}
	return names
}
