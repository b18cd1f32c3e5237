package provide

import "slices"

// A group is one package under one or more names, in order of preference.
type group []Candidate

// mergeSources keeps the candidate of each repository from the source with the highest priority. Another source cannot
// change facts about its package, such as its publisher.
func mergeSources(all []Candidate) []Candidate {
	sorted := slices.SortedFunc(slices.Values(all), Candidate.compare)
	first := map[string]int{}
	for _, c := range sorted {
		if p, ok := first[c.Repository]; !ok || c.Priority < p {
			first[c.Repository] = c.Priority
		}
	}
	var out []Candidate
	seen := map[string]bool{}
	for _, c := range sorted {
		// A package can have one kind in two roles: a Function with a CRD that is also its input.
		if c.Priority == first[c.Repository] && !seen[c.Repository] {
			seen[c.Repository] = true
			out = append(out, c)
		}
	}
	return out
}

// mergeNames groups the candidates that are one package: equal content, a package and the package that it was renamed
// to, and packages that name each other as aliases. A name that only one of two packages claims does not count.
func mergeNames(all []Candidate) []group {
	same := make([]int, len(all)) // the first member of the group of each candidate
	for i := range all {
		same[i] = i
		for j := range i {
			if isSame(all[i], all[j]) {
				join(same[:i+1], same[i], same[j])
			}
		}
	}
	var out []group
	at := map[int]int{}
	for i, c := range all {
		g, ok := at[same[i]]
		if !ok {
			g = len(out)
			at[same[i]] = g
			out = append(out, nil)
		}
		out[g] = append(out[g], c)
	}
	for _, g := range out {
		slices.SortStableFunc(g, compareNames)
	}
	return out
}

// join makes two groups one.
func join(same []int, a, b int) {
	low, high := min(a, b), max(a, b)
	for i := range same {
		if same[i] == high {
			same[i] = low
		}
	}
}

// compareNames orders the names of one package: a renamed package comes after its new name.
func compareNames(a, b Candidate) int {
	switch {
	case a.ReplacedBy == b.Repository && b.ReplacedBy != a.Repository:
		return 1
	case b.ReplacedBy == a.Repository && a.ReplacedBy != b.Repository:
		return -1
	}
	return a.compare(b)
}

func isSame(a, b Candidate) bool {
	return !a.Digest.IsZero() && a.Digest == b.Digest ||
		a.ReplacedBy == b.Repository || b.ReplacedBy == a.Repository ||
		slices.Contains(a.Aliases, b.Repository) && slices.Contains(b.Aliases, a.Repository)
}

// publishers returns the publishers of all names of the package, unless its first name belongs to a publisher that is
// known: copies by others then do not matter.
func (g group) publishers() []string {
	if g[0].OwnsGroup || g[0].Verified {
		return []string{g[0].publisher()}
	}
	var out []string
	for _, c := range g {
		// Only the author of a package can rename it.
		if c.ReplacedBy != g[0].Repository {
			out = append(out, c.publisher())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
