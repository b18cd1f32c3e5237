package solve

import (
	"cmp"
	"slices"
)

// chains says facts in the order in which one leads to the next: who asks for a
// package first, and what that needs in turn behind it.
func (n *narrative) chains(facts []*incompatibility) []string {
	left := slices.Clone(facts)
	slices.SortStableFunc(left, func(a, b *incompatibility) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.cause.root, b.cause.root))
	})
	var out []string
	for len(left) > 0 {
		// Begin with what no other fact leads to.
		at := max(0, slices.IndexFunc(left, func(c *incompatibility) bool {
			return !slices.ContainsFunc(left, func(before *incompatibility) bool { return before != c && n.leads(before, c) })
		}))
		c := left[at]
		words := n.fact(c)
		left = slices.Delete(left, at, at+1)
		for {
			at := slices.IndexFunc(left, func(next *incompatibility) bool { return n.leads(c, next) })
			if at < 0 {
				break
			}
			c = left[at]
			words += ", which " + n.requires(c)
			left = slices.Delete(left, at, at+1)
		}
		out = append(out, words)
	}
	return out
}

// first sorts what roots ask for before everything else.
func first(c *incompatibility) int {
	if c.cause.kind == asked {
		return 0
	}
	return 1
}

// leads reports whether every version of a package that one fact leaves is one of
// which the next fact says what it needs.
func (n *narrative) leads(c, next *incompatibility) bool {
	to := n.target(c)
	if to <= 0 || !next.between() || next.cause.from != to || next.cause.to == to {
		return false
	}
	left, ok := c.find(to)
	have, _ := next.find(to)
	return ok && n.variables[to].all.without(left.set).subset(have.set)
}

// target is the package that a fact requires, or -1.
func (n *narrative) target(c *incompatibility) int {
	switch c.cause.kind {
	case asked:
		return n.search.numbers[n.roots[c.cause.root].Package]
	case needed:
		if c.cause.from != c.cause.to {
			return c.cause.to
		}
	}
	return -1
}
