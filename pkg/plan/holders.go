package plan

import "fmt"

// Holders tell who holds objects, in whatever version of its group an object is named.
type Holders map[held]string

// held is an object in any version.
type held struct{ group, kind, namespace, name string }

func (r Ref) held() held { return held{group(r.APIVersion), r.Kind, r.Namespace, r.Name} }

// Put records that somebody holds an object.
func (h Holders) Put(by string, ref Ref) { h[ref.held()] = by }

// Take gives the objects that a package brings to it, and tells which of them it
// cannot have because somebody else holds them. Whoever takes first holds.
func (h Holders) Take(by string, refs []Ref) []Refusal {
	var out []Refusal
	for _, ref := range refs {
		holder, taken := h[ref.held()]
		switch {
		case !taken:
			h.Put(by, ref)
		case holder != by:
			out = append(out, Refusal{
				Ref: ref, Holder: holder, Reason: fmt.Sprintf("%s %s, which %s brings, belongs to %s", ref.Kind, ref.Name, by, holder),
			})
		}
	}
	return out
}
