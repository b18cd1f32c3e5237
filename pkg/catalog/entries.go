package catalog

import (
	"errors"
	"iter"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/catalog/internal/frame"
)

// ChangedEntries returns the entries of the packages that differ from those of a former catalog apart from their ranks.
// A package of which only the reason is known for which its repository could not be listed has none.
func (c *Catalog) ChangedEntries(former *Catalog) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		all := func(string) bool { return true }
		before, after := former.kindPositions(all), c.kindPositions(all)
		for i := range c.Packages {
			repository := c.Packages[i].Repository
			if e := c.entry(repository, after); !c.isUnlisted(repository) && !former.hasEqual(e, before) && !yield(e) {
				return
			}
		}
	}
}

// Unlisted returns the repositories that could not be listed, and of which only the reason is known.
func (c *Catalog) Unlisted() []string {
	var out []string
	for i := range c.Packages {
		if repository := c.Packages[i].Repository; c.isUnlisted(repository) {
			out = append(out, repository)
		}
	}
	return out
}

// Repository returns the repository of the package.
func (e *Entry) Repository() string { return e.row.Repository }

// An EntryEncoder encodes entries. Its memory, which is large, serves for all of them. The zero value is ready to use.
// It is not safe for concurrent use.
type EntryEncoder struct{ coder frame.Coder }

// Encode returns an entry as a layer of a journal.
func (c *EntryEncoder) Encode(e *Entry) ([]byte, error) {
	return c.coder.Encode(encodeEvents(diffEntries(nil, e)))
}

// maxEntry limits the size of an entry in bytes.
const maxEntry = 64 << 20

var errNoPackage = errors.New("the entry has no package")

// DecodeEntry returns an entry that an EntryEncoder has encoded.
func DecodeEntry(packed []byte) (*Entry, error) {
	events, _, err := decodeEvents(packed, maxEntry)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, errNoPackage
	}
	last := events[len(events)-1]
	if last.Package == nil {
		return nil, errNoPackage
	}
	e := &Entry{
		row: *last.Package, kinds: slices.Clone(last.Kinds),
		history: *applyHistory(History{Repository: last.Repository}, events),
	}
	if last.Text != nil {
		e.text = last.Text
	}
	e.compact()
	return e, nil
}
