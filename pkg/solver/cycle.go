package solver

import "strings"

// Cycle is the error of a problem in which every solution contains a cycle of
// dependencies.
type Cycle struct {
	// Path lists the packages of the cycle with their versions. The first one is repeated
	// at the end.
	Path []string
}

// Error returns the path.
func (c *Cycle) Error() string { return strings.Join(c.Path, " requires ") }

// cycle returns the packages of a cycle among the selected versions, or nil. The result is
// deterministic.
func (s *search) cycle() []int {
	const (
		unseen = iota
		onPath
		done
	)
	mark := make([]int, len(s.variables))
	next := make([]int, len(s.variables)) // index of the next dependency of each package
	for start := 1; start < len(s.variables); start++ {
		if mark[start] != unseen {
			continue
		}
		path := []int{start}
		mark[start] = onPath
		for len(path) > 0 {
			at := path[len(path)-1]
			deps := s.selectedDependencies(at)
			if next[at] == len(deps) {
				mark[at] = done
				path = path[:len(path)-1]
				continue
			}
			d := deps[next[at]]
			next[at]++
			if d.Optional {
				continue // Each of the two can become healthy without the other.
			}
			to := s.numbers[d.Package]
			switch mark[to] {
			case onPath:
				for path[0] != to {
					path = path[1:]
				}
				return path
			case unseen:
				mark[to] = onPath
				path = append(path, to)
			}
		}
	}
	return nil
}

// cyclePath returns the packages of a cycle with their selected versions.
func (s *search) cyclePath(cycle []int) []string {
	var out []string
	for _, n := range cycle {
		out = append(out, s.selectedName(n))
	}
	return append(out, s.selectedName(cycle[0]))
}

// excludeCycle adds the incompatibility of all loaded versions that form the cycle, and
// resolves the conflict with the partial solution.
func (s *search) excludeCycle(cycle []int) error {
	if s.firstCycle == nil {
		s.firstCycle = s.cyclePath(cycle)
	}
	c := &incompatibility{cause: cause{kind: circular, cycle: cycle}}
	for i, n := range cycle {
		c.terms = append(c.terms, term{n, s.requiring(n, cycle[(i+1)%len(cycle)])})
	}
	sortTerms(c.terms)
	s.addIncompatibility(c)
	return s.resolveConflict(c)
}

// requiring returns the loaded candidates of a package that require another package.
func (s *search) requiring(pkg, to int) set {
	v := s.variables[pkg]
	out := newSet(v.size)
	for _, i := range v.read.members() {
		facts := s.store.cachedDependencies(v.name, v.candidates[i].pin())
		if facts == nil {
			continue
		}
		for _, d := range facts.deps {
			if !d.Optional && d.Package == s.variables[to].name {
				out.add(i)
			}
		}
	}
	return out
}
