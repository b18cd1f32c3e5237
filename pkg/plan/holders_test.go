package plan

import "testing"

func TestHolders(t *testing.T) {
	definition := Ref{APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition", Name: "a"}
	newer := Ref{APIVersion: "apiextensions.crossplane.io/v2", Kind: "CompositeResourceDefinition", Name: "a"}
	namesake := Ref{APIVersion: "apiextensions.crossplane.io/v1", Kind: "Composition", Name: "a"}
	stranger := Ref{APIVersion: "example.org/v1", Kind: "CompositeResourceDefinition", Name: "a"}
	h := Holders{}
	h.Put("somebody", definition)
	if got := h.Take("other", []Ref{newer, namesake, stranger}); len(got) != 1 || got[0].Ref != newer ||
		got[0].Holder != "somebody" ||
		got[0].Reason != "CompositeResourceDefinition a, which other contains, belongs to somebody" {
		t.Errorf("an object that somebody holds in another version: %+v", got)
	}
	if got := h.Take("other", []Ref{namesake, stranger}); len(got) != 0 {
		t.Errorf("what one has it may take again: %+v", got)
	}
	if got := h.Take("third", []Ref{stranger, namesake}); len(got) != 2 || got[0].Holder != "other" {
		t.Errorf("who comes first holds: %+v", got)
	}
}
