package catalog

import (
	"testing"

	"pgregory.net/rapid"
)

func TestEntriesSurviveTheEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := build(t, drawAll(t))
		decoded := map[string]*Entry{}
		for e := range c.ChangedEntries(&Catalog{}) {
			packed, err := e.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if decoded[e.Repository()], err = DecodeEntry(packed); err != nil {
				t.Fatal(err)
			}
		}
		again := (&Catalog{Config: c.Config}).Replace(decoded)
		for _, repository := range c.Unlisted() {
			of := c.kindPositions(func(name string) bool { return name == repository })
			again = again.Replace(map[string]*Entry{repository: c.entry(repository, of)})
		}
		same(t, c, again)
		for e := range again.ChangedEntries(&c) {
			t.Errorf("the entry of %s has changed", e.Repository())
		}
	})
}
