package solve

import "strings"

// A Cycle is a circle of dependencies.
type Cycle struct {
	// Path names each package of the circle with its version; the first one is
	// the last one too.
	Path []string
}

// Error is the path.
func (c *Cycle) Error() string { return strings.Join(c.Path, " needs ") }

// cycle finds a circle among the versions that were chosen, always the same one.
func (s *search) cycle() []string {
	const (
		unseen = iota
		onPath
		done
	)
	mark := make([]int, len(s.variables))
	next := make([]int, len(s.variables)) // which dependency is to be followed
	for start := 1; start < len(s.variables); start++ {
		if mark[start] != unseen {
			continue
		}
		path := []int{start}
		mark[start] = onPath
		for len(path) > 0 {
			at := path[len(path)-1]
			needs := s.chosenNeeds(at)
			if next[at] == len(needs) {
				mark[at] = done
				path = path[:len(path)-1]
				continue
			}
			need := needs[next[at]]
			next[at]++
			if need.Optional {
				continue // Each of the two can become healthy without the other.
			}
			to := s.numbers[need.Package]
			switch mark[to] {
			case onPath:
				return s.circle(path, to)
			case unseen:
				mark[to] = onPath
				path = append(path, to)
			}
		}
	}
	return nil
}

// circle is the part of a path that begins at a package, and that package again.
func (s *search) circle(path []int, from int) []string {
	var out []string
	for _, n := range path {
		if n == from || len(out) > 0 {
			out = append(out, s.chosenName(n))
		}
	}
	return append(out, s.chosenName(from))
}
