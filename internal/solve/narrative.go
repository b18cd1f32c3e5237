package solve

import (
	"fmt"
	"slices"
)

// A narrative turns a proof into lines. A line draws one conclusion from facts and
// from earlier lines.
type narrative struct {
	*search
	uses    map[*incompatibility]int
	numbers map[*incompatibility]int // of the lines that are written
	refers  map[int]bool
	lines   []string
}

// merged is how many facts one line may draw together.
const merged = 6

func tell(s *search, proof *incompatibility) []string {
	n := &narrative{search: s, uses: map[*incompatibility]int{}, numbers: map[*incompatibility]int{}, refers: map[int]bool{}}
	if proof = plain(proof); proof.cause.kind != derived {
		return []string{"Because " + n.fact(proof) + ", there is no solution"}
	}
	n.count(proof)
	n.write(proof)
	for i := range n.lines {
		if n.refers[i+1] {
			n.lines[i] = fmt.Sprintf("(%d) %s", i+1, n.lines[i])
		}
	}
	return n.lines
}

// plain leaves out that the problem is to be solved, which goes without saying.
func plain(c *incompatibility) *incompatibility {
	for c.cause.kind == derived {
		switch {
		case c.cause.left.cause.kind == required:
			c = c.cause.right
		case c.cause.right.cause.kind == required:
			c = c.cause.left
		default:
			return c
		}
	}
	return c
}

func premises(c *incompatibility) []*incompatibility {
	return []*incompatibility{plain(c.cause.left), plain(c.cause.right)}
}

// count counts how often each conclusion is used.
func (n *narrative) count(c *incompatibility) {
	open := []*incompatibility{c}
	for len(open) > 0 {
		c := open[len(open)-1]
		open = open[:len(open)-1]
		n.uses[c]++
		if c.cause.kind == derived && n.uses[c] == 1 {
			open = append(open, premises(c)...)
		}
	}
}

// A line is a conclusion with what it is drawn from.
type line struct {
	facts []*incompatibility
	from  []*incompatibility // derived: they have lines of their own
}

// gather collects the reasons of a conclusion, with those of its premises where
// they are few and nobody else uses them.
func (n *narrative) gather(c *incompatibility) line {
	var l line
	open := premises(c)
	for len(open) > 0 {
		p := open[0]
		open = open[1:]
		switch {
		case p.cause.kind != derived:
			if !slices.Contains(l.facts, p) {
				l.facts = append(l.facts, p)
			}
		case n.uses[p] == 1 && n.near(p) && len(l.facts)+len(l.from)+len(open) < merged:
			open = append(open, premises(p)...)
		default:
			l.from = append(l.from, p)
		}
	}
	return l
}

// near reports whether a conclusion is drawn from at least one fact.
func (n *narrative) near(c *incompatibility) bool {
	return slices.ContainsFunc(premises(c), func(p *incompatibility) bool { return p.cause.kind != derived })
}

// write writes the lines of a conclusion, after those that it rests on.
func (n *narrative) write(proof *incompatibility) {
	type frame struct {
		c    *incompatibility
		line line
		next int
	}
	path := []frame{{c: proof, line: n.gather(proof)}}
	for len(path) > 0 {
		f := &path[len(path)-1]
		if f.next < len(f.line.from) {
			c := f.line.from[f.next]
			f.next++
			if n.numbers[c] == 0 {
				path = append(path, frame{c: c, line: n.gather(c)})
			}
			continue
		}
		n.finish(f.c, f.line)
		path = path[:len(path)-1]
	}
}

func (n *narrative) finish(c *incompatibility, l line) {
	last := len(n.lines)
	var reasons []string
	and := "Because "
	for _, p := range l.from {
		at := n.numbers[p]
		if at == last && n.uses[p] == 1 && len(l.from) == 1 {
			and = "And because "
			continue
		}
		n.refers[at] = true
		reasons = append(reasons, fmt.Sprintf("%s (%d)", n.conclusion(p), at))
	}
	reasons = unique(append(reasons, n.chains(l.facts)...))
	n.lines = append(n.lines, and+list(reasons, ", and")+", "+n.conclusion(c))
	n.numbers[c] = len(n.lines)
}

func unique(words []string) []string {
	var out []string
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
