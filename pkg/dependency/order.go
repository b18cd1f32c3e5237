package dependency

import "slices"

// Order returns the packages in dependency order: each package follows its dependencies,
// except in cycles. Otherwise it keeps the order of the graph.
func (g *Graph) Order() []string {
	var out []string
	seen := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		if seen[pkg] || !g.Contains(pkg) {
			return
		}
		seen[pkg] = true
		for _, d := range g.dependencies[pkg] {
			visit(d.Package)
		}
		out = append(out, pkg)
	}
	for _, pkg := range g.packages {
		visit(pkg)
	}
	return out
}

// Depths returns the length of the longest path from each package. A dependency that closes
// a cycle is treated as one without dependencies.
func (g *Graph) Depths() map[string]int {
	out := map[string]int{}
	var visit func(pkg string) int
	visit = func(pkg string) int {
		if depth, ok := out[pkg]; ok {
			return depth
		}
		out[pkg] = 0
		deepest := 0
		for _, d := range g.dependencies[pkg] {
			deepest = max(deepest, visit(d.Package)+1)
		}
		out[pkg] = deepest
		return deepest
	}
	for _, pkg := range g.packages {
		visit(pkg)
	}
	return out
}

// Path returns a shortest path, including both ends, from one of the given packages to
// another package, or nil if there is none. It does not contain packages for which avoid
// returns true; avoid can be nil.
func (g *Graph) Path(from []string, to string, avoid func(pkg string) bool) []string {
	previous := map[string]string{}
	var queue []string
	discover := func(pkg, by string) {
		if _, seen := previous[pkg]; !seen && (avoid == nil || !avoid(pkg)) {
			previous[pkg] = by
			queue = append(queue, pkg)
		}
	}
	starts := map[string]bool{}
	for _, pkg := range from {
		discover(pkg, "")
		starts[pkg] = true
	}
	for ; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			path := []string{to}
			for at := to; !starts[at]; path = append(path, at) {
				at = previous[at]
			}
			slices.Reverse(path)
			return path
		}
		for pkg := range g.requirements(queue[0]) {
			discover(pkg, queue[0])
		}
	}
	return nil
}

// Cycle returns a shortest path from a package to itself, which starts and ends with it, or
// nil if it is not part of a cycle.
func (g *Graph) Cycle(pkg string) []string {
	path := g.Path(slices.Collect(g.requirements(pkg)), pkg, nil)
	if path == nil {
		return nil
	}
	return slices.Insert(path, 0, pkg)
}
