package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
)

// closureNode is a package of a closure in a tree.
type closureNode struct {
	Package string      `json:"package"`
	Version string      `json:"version,omitempty"`
	Digest  string      `json:"digest"`
	Kind    format.Kind `json:"kind"`
	// Constraint is that of whoever is above in the tree.
	Constraint string `json:"constraint,omitempty"`
	// By names the package of a folder that asks for a root.
	By    string         `json:"by,omitempty"`
	Needs []*closureNode `json:"needs,omitempty"`
	// Seen says that what it needs is shown elsewhere in the tree.
	Seen bool `json:"seen,omitempty"`
}

// closureTree gives the trees of the roots of a closure.
func closureTree(f lockfile.File) []*closureNode {
	seen := map[string]bool{}
	out := []*closureNode{}
	for _, r := range f.Roots {
		n := growClosure(f, r.Package, r.Constraint, seen)
		n.By = r.By
		out = append(out, n)
	}
	return out
}

func growClosure(f lockfile.File, repository, constraint string, seen map[string]bool) *closureNode {
	p, _ := f.Find(repository)
	n := &closureNode{Package: repository, Version: p.Version, Digest: p.Digest.String(), Kind: p.Kind, Constraint: constraint}
	if n.Seen = seen[repository] && len(p.Dependencies) > 0; n.Seen {
		return n
	}
	seen[repository] = true
	for _, d := range p.Dependencies {
		n.Needs = append(n.Needs, growClosure(f, d.Package, d.Constraint, seen))
	}
	return n
}

// writeClosureTree draws the trees.
func writeClosureTree(w io.Writer, f lockfile.File, nodes []*closureNode) {
	if len(nodes) == 0 {
		fmt.Fprintln(w, "Nothing is needed.")
	}
	for _, n := range nodes {
		n.write(w, f, "", "")
	}
}

func (n *closureNode) write(w io.Writer, f lockfile.File, first, rest string) {
	p, _ := f.Find(n.Package)
	line := strings.TrimSpace(fmt.Sprintf("%s/%s  %s  %s", strings.ToLower(string(n.Kind)), n.Package, p.Name(), n.Constraint))
	if n.By != "" {
		line += "  (for " + n.By + ")"
	}
	if n.Seen {
		line += "  (see above)"
	}
	fmt.Fprintf(w, "%s%s\n", first, safe(line))
	for i, need := range n.Needs {
		if i == len(n.Needs)-1 {
			need.write(w, f, rest+"└─ ", rest+"   ")
		} else {
			need.write(w, f, rest+"├─ ", rest+"│  ")
		}
	}
}
