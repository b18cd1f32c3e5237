package catalog

import (
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

func TestEntriesSurviveTheEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := build(t, drawAll(t))
		var encoder EntryEncoder
		decoded := map[string]*Entry{}
		for e := range c.ChangedEntries(&Catalog{}) {
			packed, err := encoder.Encode(e)
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

func TestEntriesAreEncodedWithTheMemoryOfOneEncoder(t *testing.T) {
	var facts []Facts
	for i := range 20 {
		name := fmt.Sprintf("registry.example.org/acme/boats%d", i)
		facts = append(facts, Facts{Repository: name, Version: Version{Tag: "v1.0.0"}, Head: &Head{Package: Package{
			Repository: name, Type: "Provider",
		}}})
	}
	c, err := Build(Config{Name: "test"}, facts)
	if err != nil {
		t.Fatal(err)
	}
	var encoder EntryEncoder
	encode := func() {
		for e := range c.ChangedEntries(&Catalog{}) {
			if _, err := encoder.Encode(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	encode()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	encode()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("the encoder allocates %d bytes for 20 small entries", got)
	}
}
