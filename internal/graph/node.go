package graph

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// Node is a package of the control plane.
type Node struct {
	// Kind and Name are those of its object.
	Kind, Name string
	// Locked is what is installed of it: the repository, the tag, the digest, and what
	// it needs. What it needs is empty while the content is not known.
	lockfile.Package
	// Asked is the reference that its object asks for. It differs from what the package
	// stands for when that was brought back.
	Requested string
	// Running are the versions whose objects may be in the cluster, see [Running].
	Running []Version
	// Skip says that nothing is to be done about what it needs. It is there for others
	// all the same.
	SkipDependencies bool
	// Made says that it was installed because others need it, and by nobody else.
	AutoInstalled bool
	// Paused says that a person keeps the package manager from it.
	Paused bool
}

// needs are those that count, of what has to be there.
func (n Node) requiredDependencies() []lockfile.Dependency { return n.dependencies(false) }

// suits are those that count, of what need not be there.
func (n Node) optionalDependencies() []lockfile.Dependency { return n.dependencies(true) }

func (n Node) dependencies(optional bool) []lockfile.Dependency {
	var out []lockfile.Dependency
	for _, d := range n.Dependencies {
		if !n.SkipDependencies && d.Optional == optional {
			out = append(out, d)
		}
	}
	return out
}

// Compare orders nodes by kind and name.
func (n Node) Compare(other Node) int {
	return cmp.Or(cmp.Compare(n.Kind, other.Kind), cmp.Compare(n.Name, other.Name))
}

// Graph is all packages of a control plane, or those of them that have to do with each
// other.
type Graph struct {
	nodes []Node
	// at has those of a repository. There should be one, and can be more: the first
	// one by kind and name stands for it.
	byRepository map[string][]int
	// places tell where the packages are found, and from is how that is known.
	byLocation map[string]string
	locate     func(repository string) string
	// conditions are what packages that are not in the graph say about others that are
	// nowhere, and may come.
	outsideRequirements []lockfile.Root
}

// NewGraph makes the graph of some packages, in whatever order they are. From tells
// where a repository is really read, so that a package is known under each of its
// names; nil when that is where its name says.
func New(nodes []Node, from func(repository string) string) *Graph {
	if from == nil {
		from = func(repository string) string { return repository }
	}
	g := &Graph{nodes: slices.SortedFunc(slices.Values(nodes), Node.Compare), byRepository: map[string][]int{}, byLocation: map[string]string{}, locate: from}
	for i, n := range g.nodes {
		g.byRepository[n.Repository] = append(g.byRepository[n.Repository], i)
		if place := from(n.Repository); g.byLocation[place] == "" {
			g.byLocation[place] = n.Repository
		}
	}
	for i := range g.nodes {
		needs := slices.Clone(g.nodes[i].Dependencies)
		for j := range needs {
			needs[j].Package = g.Name(needs[j].Package)
		}
		g.nodes[i].Dependencies = needs
	}
	return g
}

// Name is the one name that a repository has in the graph: that under which it is
// installed, if it is.
func (g *Graph) Name(repository string) string {
	if len(g.byRepository[repository]) > 0 {
		return repository
	}
	return cmp.Or(g.byLocation[g.locate(repository)], repository)
}

// Find gives the package of a repository.
func (g *Graph) Find(repository string) (Node, bool) {
	at := g.byRepository[repository]
	if len(at) == 0 {
		return Node{}, false
	}
	return g.nodes[at[0]], true
}

// Nodes are all packages, by kind and name.
func (g *Graph) Nodes() []Node { return g.nodes }
