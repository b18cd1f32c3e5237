package plan

import (
	"fmt"
	"slices"
)

// Holders records the owners of objects, in any version of their group.
type Holders map[held]string

// held is an object in any version.
type held struct{ group, kind, namespace, name string }

func (r Ref) held() held { return held{group(r.APIVersion), r.Kind, r.Namespace, r.Name} }

// Without returns the references that do not name any of the recorded objects, in any version of their group.
func Without(refs, objects []Ref) []Ref {
	named := map[held]bool{}
	for _, o := range objects {
		named[o.held()] = true
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool { return named[r.held()] })
}

// Put records the owner of an object.
func (h Holders) Put(by string, ref Ref) { h[ref.held()] = by }

// Take records a package as the owner of its objects, and returns the objects that another package already
// owns.
func (h Holders) Take(by string, refs []Ref) []Refusal {
	var out []Refusal
	for _, ref := range refs {
		holder, taken := h[ref.held()]
		switch {
		case !taken:
			h.Put(by, ref)
		case holder != by:
			out = append(out, Refusal{
				Ref: ref, Holder: holder,
				Reason: fmt.Sprintf("%s %s, which %s contains, belongs to %s", ref.Kind, ref.Name, by, holder),
			})
		}
	}
	return out
}
