package solver

import (
	"sort"

	"github.com/xpkg-dev/xpkg/pkg/version"
)

// spans returns the releases that satisfy alternatives of comparisons. Each comparison accepts
// consecutive releases, so that bisection finds the ends. It returns false for comparisons
// without this property.
func (v *variable) spans(alternatives [][]version.Comparison) (set, bool) {
	out := newSet(v.size)
	for _, all := range alternatives {
		from, to := v.first, v.size
		for i := range all {
			if !all[i].Contiguous() {
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

// ends returns the index of the first candidate that a comparison accepts, and the index after
// the last one.
func (v *variable) ends(c *version.Comparison) (lo, hi int) {
	lo = v.first + sort.Search(v.size-v.first, func(i int) bool { return !c.Below(&v.candidates[v.first+i].version) })
	hi = lo + sort.Search(v.size-lo, func(i int) bool { return !c.Accepts(&v.candidates[lo+i].version) })
	return lo, hi
}
