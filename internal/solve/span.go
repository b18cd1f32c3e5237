package solve

import "sort"

// spans is the set of releases that satisfy alternatives of comparisons. Each
// comparison accepts releases that lie side by side, so that its ends are found by
// bisection. It reports false for comparisons of which that is not true.
func (v *variable) spans(alternatives [][]comparison) (set, bool) {
	out := newSet(v.size)
	for _, all := range alternatives {
		from, to := v.first, v.size
		for i := range all {
			if all[i].op == "!=" {
				return nil, false
			}
			lo, hi := v.ends(&all[i])
			from, to = max(from, lo), min(to, hi)
		}
		for i := from; i < to; i++ {
			if !v.candidates[i].version.Prerelease() {
				out.add(i)
			}
		}
	}
	return out, true
}

// ends are the first candidate that a comparison accepts and the first behind those
// that it accepts.
func (v *variable) ends(c *comparison) (lo, hi int) {
	lo = v.first + sort.Search(v.size-v.first, func(i int) bool { return !c.below(&v.candidates[v.first+i].version) })
	hi = lo + sort.Search(v.size-lo, func(i int) bool { return !c.accepts(&v.candidates[lo+i].version) })
	return lo, hi
}

// below reports whether a release comes before all that the comparison accepts.
func (c *comparison) below(v *Version) bool {
	switch c.op {
	case "<", "<=", "=<":
		return false
	case ">":
		return !c.accepts(v)
	}
	return c.order(v) < 0
}
