package solver

// ranked is an undecided package with its position in the order of decisions.
type ranked struct{ rank, place, pkg int }

// unordered is a position after every known one.
const unordered = 1 << 40

func (r ranked) before(other ranked) bool {
	return r.rank < other.rank || r.rank == other.rank && r.place < other.place
}

// queue is a binary heap of undecided packages. Unlike container/heap, it allocates nothing for an
// element, of which a search for 10,000 packages adds and removes 100,000.
type queue []ranked

func (q *queue) push(r ranked) {
	*q = append(*q, r)
	h := *q
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// pop removes and returns the first package. The queue must not be empty.
func (q *queue) pop() ranked {
	h := *q
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	*q = h
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return first
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
