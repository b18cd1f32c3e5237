package catalog

import (
	"container/heap"
	"maps"
	"slices"
	"strings"
)

// Fit returns the catalog without the packages and texts that do not fit into the layers that packages share. Of such
// packages, the catalog has the name and the reason. The result depends on the content of the catalog alone, and a
// catalog that fits is returned as it is.
//
// While a layer is too large, the largest package of the largest prefix of repositories is left out: at first of the
// largest host, then of the largest prefix below it, and so on. A publisher with many or large packages below a prefix
// therefore displaces only its own ones.
func (c *Catalog) Fit() Catalog {
	out := c.fitHistories()
	out = out.fitPackages()
	return out.fitTexts()
}

// fitHistories leaves out the packages whose histories do not fit into the layers of an index with as many layers as
// possible.
func (c *Catalog) fitHistories() Catalog {
	var bounds [maxShards]int
	for i := range c.Histories {
		bounds[shardOf(c.Histories[i].Repository, maxShards)] += c.Histories[i].bound()
	}
	left := map[string]*Entry{}
	for shard, bound := range bounds {
		if bound <= maxShard {
			continue
		}
		l := layer{limit: maxShard}
		for i := range c.Histories {
			h := &c.Histories[i]
			if shardOf(h.Repository, maxShards) == shard {
				l.add(h.Repository, len(encodeShard([]*History{h})), len(encodeShard([]*History{{Repository: h.Repository}})))
			}
		}
		l.share(func(repository string, size int) {
			left[repository] = excluded(repository, ErrUnindexable.New(nil,
				"the versions and kinds of the package have %d bytes in the index, and the packages in the same layer have more than %d bytes together",
				size, maxShard))
		})
	}
	return c.Replace(left)
}

// fitPackages leaves out the packages whose rows do not fit into the layer of packages.
func (c *Catalog) fitPackages() Catalog {
	bound := 0
	for i := range c.Packages {
		bound += c.Packages[i].bound()
	}
	left := map[string]*Entry{}
	if bound > maxPackages {
		l := layer{limit: maxPackages}
		without := func(p *Package, size int) *Entry {
			return excluded(p.Repository, ErrUnindexable.New(nil,
				"the package has %d bytes in the list of the packages of the index, which has more than %d bytes", size,
				maxPackages))
		}
		for i := range c.Packages {
			p := &c.Packages[i]
			size := len(encodePackages(c.Packages[i : i+1]))
			l.add(p.Repository, size, min(size, len(encodePackages([]Package{without(p, size).row}))))
		}
		l.share(func(repository string, size int) { left[repository] = without(c.exact(repository), size) })
	}
	return c.Replace(left)
}

// fitTexts leaves out the texts that do not fit into the layer of texts. Their packages can still be found by their
// names.
func (c *Catalog) fitTexts() Catalog {
	bound := 0
	for i := range c.Texts {
		bound += c.Texts[i].bound()
	}
	if bound <= maxText {
		return *c
	}
	l, left := layer{limit: maxText}, map[string]bool{}
	for i := range c.Texts {
		l.add(c.Texts[i].Repository, len(encodeTexts(c.Texts[i:i+1])), 0)
	}
	l.share(func(repository string, _ int) { left[repository] = true })
	of, without := c.kindPositions(func(repository string) bool { return left[repository] }), map[string]*Entry{}
	for repository := range left {
		e := c.entry(repository, of)
		e.text = nil
		without[repository] = e
	}
	return c.Replace(without)
}

// A layer has the sizes that packages have in a layer that they share.
type layer struct {
	// limit is the number of bytes for what can be left out.
	limit int
	root  prefix
}

// A prefix is a prefix of repositories, or one repository.
type prefix struct {
	name string
	// size is what the packages need in addition to what they have in the layer if they are left out.
	size  int
	below map[string]*prefix
	// parts are the prefixes below, once one of their packages was left out.
	parts parts
	// repository is the name of the repository, and whole its size; "" for a prefix of repositories.
	repository string
	whole      int
}

// add adds a package with its size, and the size that it has if it is left out.
func (l *layer) add(repository string, size, without int) {
	l.limit -= without
	at := &l.root
	at.size += size - without
	// The name of a repository can be a prefix of another one, but not with the last, empty, part.
	for name := range strings.SplitSeq(repository+"/", "/") {
		if at.below == nil {
			at.below = map[string]*prefix{}
		}
		if at.below[name] == nil {
			at.below[name] = &prefix{name: name}
		}
		at = at.below[name]
		at.size += size - without
	}
	at.repository, at.whole = repository, size
}

// share calls leaveOut for each package that is left out.
func (l *layer) share(leaveOut func(repository string, size int)) {
	for l.root.size > max(l.limit, 0) {
		left := l.root.leaveOut()
		leaveOut(left.repository, left.whole)
	}
}

// leaveOut leaves out the largest package of the largest prefix below, and returns it.
func (p *prefix) leaveOut() *prefix {
	if p.below == nil {
		p.size = 0
		return p
	}
	if p.parts == nil {
		p.parts = slices.Collect(maps.Values(p.below))
		heap.Init(&p.parts)
	}
	largest := p.parts[0]
	p.size -= largest.size
	left := largest.leaveOut()
	p.size += largest.size
	heap.Fix(&p.parts, 0)
	return left
}

// parts is a heap of prefixes, the largest first.
type parts []*prefix

// Len implements [heap.Interface].
func (h parts) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h parts) Less(i, j int) bool {
	return h[i].size > h[j].size || h[i].size == h[j].size && h[i].name > h[j].name
}

// Swap implements [heap.Interface].
func (h parts) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *parts) Push(x any) { *h = append(*h, x.(*prefix)) }

// Pop implements [heap.Interface].
func (h *parts) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// Upper bounds for the bytes of JSON.
const (
	boundOfField = 40 // the name of a field, its punctuation, and a value other than a text
	// boundOfByte is the bound of a byte of any text, and boundOfPrintable that of one without control characters.
	boundOfByte, boundOfPrintable = 6, 2
)

// bound returns at least the bytes of the history in a layer.
func (h *History) bound() int {
	n := 4*boundOfField + len(h.Repository)
	for i := range h.Versions {
		v := &h.Versions[i]
		n += 14*boundOfField + len(v.Tag) + 2*80 // two digests
		texts := len(v.Crossplane)
		for _, d := range v.Dependencies {
			n += 3 * boundOfField
			texts += len(d.Package) + len(d.Constraint)
		}
		for _, s := range v.Signatures {
			n += boundOfField
			texts += len(s)
		}
		if s := v.Status; s != nil {
			n += 5 * boundOfField
			texts += len(s.State) + len(s.Reason) + len(s.Message) + len(s.ReplacedBy)
		}
		if e := v.Error; e != nil {
			texts += len(e.Code) + len(e.Message)
		}
		n += boundOfByte * texts
	}
	for i := range h.Kinds {
		k := &h.Kinds[i]
		n += boundOfField + len(k.Group) + len(k.Kind)
		for _, in := range k.Intervals {
			n += 16 + len(in.Version) + len(in.Since) + len(in.Until)
		}
	}
	return n
}

// bound returns at least the bytes of the row in a layer.
func (p *Package) bound() int {
	texts := len(p.Repository) + len(p.Type) + len(p.Title) + len(p.Summary) + len(p.Category) + len(p.License) +
		len(p.Website) + len(p.SourceURL) + len(p.Publisher) +
		len(p.Verified) + len(p.Latest) + len(p.ReplacedBy)
	for _, list := range [][]string{p.Keywords, p.Aliases} {
		for _, s := range list {
			texts += 2 + len(s)
		}
	}
	if e := p.Error; e != nil {
		texts += len(e.Code) + len(e.Message)
	}
	return 20*boundOfField + boundOfPrintable*texts
}

// bound returns at least the bytes of the text in a layer.
func (t *Text) bound() int {
	texts := len(t.Repository) + len(t.Readme)
	for i := range t.Kinds {
		k := &t.Kinds[i]
		texts += boundOfField + len(k.Group) + len(k.Kind) + len(k.Description)
		for _, f := range k.Fields {
			texts += 2 + len(f)
		}
	}
	return 2*boundOfField + boundOfPrintable*texts
}
