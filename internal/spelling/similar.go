package spelling

import (
	"cmp"
	"slices"
	"strings"
)

// Alike returns the words whose spelling is similar to word: at most three, the most
// similar first. It ignores case.
func Alike(word string, words []string) []string {
	const most, farthest = 3, 2
	distance := func(s string) int { return Distance(strings.ToLower(s), strings.ToLower(word)) }
	near := slices.DeleteFunc(slices.Clone(words), func(s string) bool { return distance(s) > max(farthest, len(word)/4) })
	slices.SortFunc(near, func(a, b string) int { return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a, b)) })
	near = slices.Compact(near)
	return near[:min(most, len(near))]
}
