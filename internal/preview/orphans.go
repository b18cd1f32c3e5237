package preview

import (
	"slices"

	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
)

// Orphan is a package that was installed because others need it, and that nobody needs
// any more.
type Orphan struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Reference string `json:"reference"`
	// Removed says that the package manager removes it, unless there are custom
	// resources of its definitions.
	Removed bool `json:"removed,omitempty"`
}

// orphans finds the packages that somebody needs now, and nobody when a package is as
// it will be: nil when it will not be there. Changes come with it. What packages need is
// what the Lock says; the package manager removes nothing before it knows all of that.
func (s *situation) orphans(others []closure.Node, will *closure.Node, changes []closure.Change) []Orphan {
	if s.live == nil {
		return nil
	}
	var before []closure.Node
	if was, ok := s.node(s.live); ok {
		before = append(before, was)
	}
	after := carriedOut(others, changes)
	if will != nil {
		after = append(after, *will)
	}
	vain := s.inVain(append(before, others...))
	removed := s.lock.Annotations[closure.AnnotationRemoval] == string(closure.RemoveOrphans)
	var out []Orphan
	for _, n := range s.inVain(after) {
		if !slices.ContainsFunc(vain, func(o closure.Node) bool { return o.Compare(n) == 0 }) {
			out = append(out, Orphan{Kind: n.Kind, Name: n.Name, Reference: n.Reference(), Removed: removed})
		}
	}
	return out
}

// carriedOut are nodes after some changes.
func carriedOut(nodes []closure.Node, changes []closure.Change) []closure.Node {
	out := slices.Clone(nodes)
	for _, c := range changes {
		if c.Object == nil {
			out = append(out, closure.Node{Kind: string(c.To.Kind), Package: c.To, Made: true})
			continue
		}
		for i := range out {
			if out[i].Compare(*c.Object) == 0 {
				out[i].Package = c.To
			}
		}
	}
	return out
}

// inVain are the orphans among nodes. As for the package manager, a package also needs
// what it works with, and what nothing is done about.
func (s *situation) inVain(nodes []closure.Node) []closure.Node {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Skip, nodes[i].Dependencies = false, slices.Clone(nodes[i].Dependencies)
		for j := range nodes[i].Dependencies {
			nodes[i].Dependencies[j] = lockfile.Dependency{Package: nodes[i].Dependencies[j].Package}
		}
	}
	return closure.NewGraph(nodes, s.place).Orphans()
}
