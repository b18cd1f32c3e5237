package solve

// An incompatibility says that not all of its terms can hold at once.
type incompatibility struct {
	terms []term // one for each package, in the order of the packages' numbers
	cause cause
}

// A term holds when the state of a package is in a set.
type term struct {
	pkg int
	set set
}

// kind says why an incompatibility holds.
type kind int

const (
	derived  kind = iota // it follows from two others
	required             // the problem is to be solved
	asked                // a root asks for it
	needed               // versions of a package depend on another one
	suited               // versions of a package go with some of another one only
	vanished             // versions of a package can no longer be had
	held                 // what is installed may not move there
)

// A cause is why an incompatibility holds.
type cause struct {
	kind kind
	root int // of asked: index in the roots
	// from, to and texts are of needed and suited: the constraints as they were written.
	from, to int
	texts    []string
	// left and right are of derived, pivot is the package on which they meet.
	left, right *incompatibility
	pivot       int
}

// between reports whether an incompatibility is a fact about a dependency.
func (c *incompatibility) between() bool { return c.cause.kind == needed || c.cause.kind == suited }

func (c *incompatibility) find(pkg int) (term, bool) {
	for _, t := range c.terms {
		if t.pkg == pkg {
			return t, true
		}
	}
	return term{}, false
}

// resolve derives what follows from two incompatibilities that meet on a package:
// whichever of their two sets holds its state, the rest of one of them cannot
// hold. A term that holds always is left out.
func resolve(a, b *incompatibility, pivot int, all set) *incompatibility {
	out := &incompatibility{cause: cause{kind: derived, left: a, right: b, pivot: pivot}}
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
