package spelling

import (
	"cmp"
	"slices"
	"strings"
)

// Alike returns the words whose spelling is similar to word: at most three, the most
// similar first. It ignores case.
func Alike(word string, words []string) []string {
	return alike(word, words, func(s string) []string { return []string{s} })
}

// AlikeReferences returns the references of packages whose spelling is similar to word, like [Alike]. Word can be a
// whole reference or only its end, such as the name and the tag, or the name alone.
func AlikeReferences(word string, references []string) []string {
	return alike(word, references, referenceEnds)
}

// referenceEnds returns the parts of a reference that end where it ends, each with and without the tag or digest.
func referenceEnds(reference string) []string {
	var out []string
	for rest, more := reference, true; more; _, rest, more = strings.Cut(rest, "/") {
		out = append(out, rest)
		name, _, _ := strings.Cut(rest, "@")
		if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
			name = name[:i]
		}
		out = append(out, name)
	}
	return out
}

// alike returns the words of which a form is similar to word.
func alike(word string, words []string, forms func(string) []string) []string {
	const most, farthest = 3, 2
	type match struct {
		word     string
		distance int
	}
	var near []match
	for _, s := range words {
		nearest := -1
		for _, form := range forms(s) {
			if d := Distance(strings.ToLower(form), strings.ToLower(word)); nearest < 0 || d < nearest {
				nearest = d
			}
		}
		if nearest >= 0 && nearest <= max(farthest, len(word)/4) {
			near = append(near, match{s, nearest})
		}
	}
	slices.SortFunc(
		near, func(a, b match) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.word, b.word)) },
	)
	near = slices.Compact(near)
	var out []string
	for _, m := range near[:min(most, len(near))] {
		out = append(out, m.word)
	}
	return out
}
