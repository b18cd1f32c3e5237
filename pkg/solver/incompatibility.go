package solver

import (
	"cmp"
	"slices"
)

// incompatibility is a set of terms that must not all be satisfied at once.
type incompatibility struct {
	terms []term // at most one for each package, ordered by the packages' numbers
	cause cause
}

// term is satisfied if the state of a package is in a set.
type term struct {
	pkg int
	set set
}

// causeKind is the reason why an incompatibility holds.
type causeKind int

const (
	derived            causeKind = iota // it follows from two other incompatibilities
	required                            // the problem must be solved
	rootRequirement                     // a root requires the package
	requiredDependency                  // versions of a package depend on another package
	optionalDependency                  // versions of a package restrict another package
	unavailableVersion                  // versions of a package are not available
	installedPin                        // the installed version must not change to these versions
	circular                            // the versions depend on each other in a cycle
)

// cause is a node of the derivation graph.
type cause struct {
	kind causeKind
	root int // of rootRequirement: index in the roots
	// from, to and texts belong to requiredDependency and optionalDependency; texts are the
	// constraints as written.
	from, to int
	texts    []string
	// left and right belong to derived; pivot is the package that they share.
	left, right *incompatibility
	pivot       int
	// cycle belongs to circular: each package requires the next one.
	cycle []int
}

// isDependency reports whether the incompatibility states a dependency.
func (c *incompatibility) isDependency() bool {
	return c.cause.kind == requiredDependency || c.cause.kind == optionalDependency
}

func (c *incompatibility) find(pkg int) (term, bool) {
	for _, t := range c.terms {
		if t.pkg == pkg {
			return t, true
		}
	}
	return term{}, false
}

func sortTerms(terms []term) {
	slices.SortFunc(terms, func(a, b term) int { return cmp.Compare(a.pkg, b.pkg) })
}

// resolve derives an incompatibility from two others that share a package, by the
// resolution rule. It omits terms that are always satisfied.
func resolve(a, b *incompatibility, pivot int, all set) *incompatibility {
	out := &incompatibility{cause: cause{kind: derived, left: a, right: b, pivot: pivot}}
	out.terms = make([]term, 0, len(a.terms)+len(b.terms)-1)
	i, j := 0, 0
	for i < len(a.terms) || j < len(b.terms) {
		switch {
		case j == len(b.terms) || i < len(a.terms) && a.terms[i].pkg < b.terms[j].pkg:
			out.terms = append(out.terms, a.terms[i])
			i++
		case i == len(a.terms) || b.terms[j].pkg < a.terms[i].pkg:
			out.terms = append(out.terms, b.terms[j])
			j++
		default:
			t := term{pkg: a.terms[i].pkg}
			if t.pkg == pivot {
				t.set = a.terms[i].set.or(b.terms[j].set)
			} else {
				t.set = a.terms[i].set.and(b.terms[j].set)
			}
			if t.pkg != pivot || !t.set.equal(all) {
				out.terms = append(out.terms, t)
			}
			i, j = i+1, j+1
		}
	}
	return out
}
