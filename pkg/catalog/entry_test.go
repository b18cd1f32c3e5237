package catalog

import (
	"strings"
	"testing"
	"unsafe"
)

// Equal strings of a package use the same memory, and none of the document that they were read from.
func TestEqualStringsOfAnEntryUseTheSameMemory(t *testing.T) {
	const document = "Bucket buckets bucket s3.example.org v1.0.0 v1"
	text := strings.Clone(document)
	word := func(i int) string { return strings.Fields(text)[i] }
	f := Facts{
		Repository: "registry.example.org/acme/p", Version: Version{Tag: word(4), Kinds: 1},
		Served: []ServedKind{{strings.Clone(word(3)), strings.Clone(word(0)), []string{word(5)}}},
		Head: &Head{
			Package: Package{Repository: "registry.example.org/acme/p"},
			Kinds: []Kind{{
				Kind: word(0), Plural: word(1), Singular: word(2), Group: word(3), Served: []string{word(5)}, Role: Provides,
			}},
		},
	}
	e, err := NewEntry([]Facts{f})
	if err != nil {
		t.Fatal(err)
	}
	e.SetText(&Text{Repository: f.Repository, Kinds: []KindText{{
		Group: strings.Clone(word(3)), Kind: strings.Clone(word(0)),
	}}})
	k, h, additional := &e.kinds[0], &e.history.Kinds[0], &e.text.Kinds[0]
	for name, pair := range map[string][2]string{
		"kind": {k.Kind, h.Kind}, "group": {k.Group, h.Group}, "kind of the text": {k.Kind, additional.Kind},
		"group of the text": {k.Group, additional.Group},
		"singular":          {k.Singular, k.Plural[:len(k.Singular)]}, "API version": {k.Served[0], h.Intervals[0].Version},
	} {
		if pair[0] != pair[1] || unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("%s: %q and %q are in memory twice", name, pair[0], pair[1])
		}
	}
	if unsafe.StringData(k.Kind) == unsafe.StringData(text) {
		t.Error("the name of the kind keeps its document in memory")
	}
}
