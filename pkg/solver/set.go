package solver

import "math/bits"

// set is a bit set of states of one package: bit 0 is its absence, bit i its candidate i. Sets
// of one package have the same length. A set is immutable once it is shared.
type set []uint64

func newSet(size int) set { return make(set, (size+63)/64) }

// fullSet returns the set of all states.
func fullSet(size int) set {
	s := newSet(size)
	for i := range s {
		s[i] = ^uint64(0)
	}
	if rest := size % 64; rest != 0 {
		s[len(s)-1] = 1<<rest - 1
	}
	return s
}

func single(size, i int) set {
	s := newSet(size)
	s.add(i)
	return s
}

func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s set) absent() bool   { return s[0]&1 != 0 }

func (s set) empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

func (s set) subset(t set) bool {
	for i, w := range s {
		if w&^t[i] != 0 {
			return false
		}
	}
	return true
}

func (s set) disjoint(t set) bool {
	for i, w := range s {
		if w&t[i] != 0 {
			return false
		}
	}
	return true
}

// split reports whether a set has elements inside and outside another one.
func (s set) split(t set) (inside, outside bool) {
	var in, out uint64
	t = t[:len(s)]
	for i, w := range s {
		in |= w & t[i]
		out |= w &^ t[i]
	}
	return in != 0, out != 0
}

func (s set) equal(t set) bool {
	for i, w := range s {
		if w != t[i] {
			return false
		}
	}
	return true
}

func (s set) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s set) and(t set) set {
	out := make(set, len(s))
	for i, w := range s {
		out[i] = w & t[i]
	}
	return out
}

func (s set) or(t set) set {
	out := make(set, len(s))
	for i, w := range s {
		out[i] = w | t[i]
	}
	return out
}

func (s set) without(t set) set {
	out := make(set, len(s))
	for i, w := range s {
		out[i] = w &^ t[i]
	}
	return out
}

// only returns the state of a set with one element, or -1.
func (s set) only() int {
	found := -1
	for i, w := range s {
		if w == 0 {
			continue
		}
		if found >= 0 || w&(w-1) != 0 {
			return -1
		}
		found = i*64 + bits.TrailingZeros64(w)
	}
	return found
}

// members returns the candidates of a set, lowest first, without state 0.
func (s set) members() []int {
	var out []int
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			if at := i*64 + bits.TrailingZeros64(w); at > 0 {
				out = append(out, at)
			}
		}
	}
	return out
}
