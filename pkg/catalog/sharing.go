package catalog

import (
	"reflect"
	"slices"
)

// CatalogSharing is like [Reader.Catalog]. Rows that are equal in another catalog share its memory, and only the rest
// of the index is in memory as a whole. An index with the same content shares the rows of the catalog; see
// [Catalog.SharesRows].
func (r *Reader) CatalogSharing(with *Catalog) (Catalog, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	s := sharing{
		reader: r, with: with, of: with.kindPositions(func(string) bool { return true }), entries: map[string]*Entry{},
	}
	for _, step := range []func() error{s.packages, s.kinds, s.histories, s.texts} {
		if err := step(); err != nil {
			return Catalog{}, err
		}
	}
	c := *with
	if len(s.entries) > 0 {
		c = with.merge(s.entries)
	}
	c.Config = r.config
	c.count()
	if c.Config.Counts != r.config.Counts {
		return Catalog{},
			ErrInvalidIndex.New(nil, "the index has %+v rows, its configuration states %+v", c.Config.Counts, r.config.Counts)
	}
	return c, c.verify()
}

// sharing finds the packages of an index that differ from those of a catalog.
type sharing struct {
	reader *Reader
	with   *Catalog
	// of are the positions of the kinds of the catalog.
	of positions
	// entries are the packages that differ; nil for one that the index does not contain.
	entries map[string]*Entry
}

// own returns the entry of a package that differs, which begins as that of the catalog.
func (s *sharing) own(repository string) (*Entry, error) {
	if e := s.entries[repository]; e != nil {
		return e, nil
	}
	row := (&Catalog{Packages: s.reader.packages}).exact(repository)
	if row == nil {
		return nil, ErrInvalidIndex.New(nil, "the index has rows of %.200q, which it does not contain", repository)
	}
	e := s.with.entry(repository, s.of)
	if e == nil {
		e = &Entry{history: History{Repository: repository}}
	}
	e.row = *row
	s.entries[repository] = e
	return e, nil
}

func (s *sharing) packages() error {
	read := Catalog{Packages: s.reader.packages}
	for i := range s.with.Packages {
		if repository := s.with.Packages[i].Repository; read.exact(repository) == nil {
			s.entries[repository] = nil
		}
	}
	for i := range read.Packages {
		row := &read.Packages[i]
		if same := s.with.exact(row.Repository); same != nil && reflect.DeepEqual(same, row) {
			continue
		}
		if _, err := s.own(row.Repository); err != nil {
			return err
		}
	}
	return nil
}

// kinds reads the kinds once to find the packages that differ, and again to take theirs.
func (s *sharing) kinds() error {
	equal, differs := map[string]int{}, map[string]bool{}
	err := s.reader.each((*kindsLayer).scan, func(k *Kind) {
		i, found := slices.BinarySearchFunc(s.with.Kinds, *k, compareKinds)
		if found && s.with.Kinds[i].equals(k) {
			equal[s.with.Kinds[i].Repository]++
		} else {
			differs[k.Repository] = true
		}
	})
	if err != nil {
		return err
	}
	for i := range s.reader.packages {
		if repository := s.reader.packages[i].Repository; equal[repository] != len(s.of[repository]) {
			differs[repository] = true
		}
	}
	if len(differs) == 0 {
		return nil
	}
	for repository := range differs {
		e, err := s.own(repository)
		if err != nil {
			return err
		}
		e.kinds = nil
	}
	return s.reader.each((*kindsLayer).scan, func(k *Kind) {
		if differs[k.Repository] {
			e := s.entries[k.Repository]
			e.kinds = append(e.kinds, *k)
		}
	})
}

func (s *sharing) histories() error {
	changed := map[string]bool{}
	for i := range s.reader.events {
		changed[s.reader.events[i].Repository] = true
	}
	shards := len(s.reader.manifest.Shards)
	of := make([][]string, shards)
	for i := range s.reader.packages {
		repository := s.reader.packages[i].Repository
		shard := shardOf(repository, shards)
		of[shard] = append(of[shard], repository)
	}
	for shard, repositories := range of {
		histories, err := s.reader.readShard(shard)
		if err != nil {
			return err
		}
		read := Catalog{Histories: histories}
		for _, repository := range repositories {
			h := read.History(repository)
			if h == nil {
				h = &History{Repository: repository}
			}
			if changed[repository] {
				h = applyHistory(*h, s.reader.events)
			}
			if err := s.history(h); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sharing) history(h *History) error {
	if same := s.with.History(h.Repository); same != nil && same.equals(h) {
		return nil
	}
	e, err := s.own(h.Repository)
	if err == nil {
		e.history = *h
	}
	return err
}

func (s *sharing) texts() error {
	changed, read := map[string]*Text{}, map[string]bool{}
	for i := range s.reader.events {
		switch e := &s.reader.events[i]; {
		case e.Type == Forget, e.Text != nil && e.Text.empty():
			changed[e.Repository] = nil
		case e.Text != nil:
			changed[e.Repository] = e.Text
		}
	}
	take := func(t *Text) error {
		read[t.Repository] = true
		return s.text(t)
	}
	if d := s.reader.manifest.Text; d != nil {
		packed, err := s.reader.Blob(*d)
		if err != nil {
			return err
		}
		err = eachText(packed, func(t *Text) error {
			if _, isChanged := changed[t.Repository]; isChanged {
				return nil
			}
			return take(t)
		})
		if err != nil {
			return ErrInvalidIndex.New(err, "cannot read the layer of texts")
		}
	}
	for _, t := range changed {
		if t == nil {
			continue
		}
		if err := take(t); err != nil {
			return err
		}
	}
	for i := range s.with.Texts {
		repository := s.with.Texts[i].Repository
		if e, differs := s.entries[repository]; read[repository] || differs && e == nil {
			continue
		}
		e, err := s.own(repository)
		if err != nil {
			return err
		}
		e.text = nil
	}
	return nil
}

func (s *sharing) text(t *Text) error {
	if same := s.with.textOf(t.Repository); same != nil && reflect.DeepEqual(same, t) {
		return nil
	}
	e, err := s.own(t.Repository)
	if err == nil {
		e.text = t
	}
	return err
}
