package indexer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// A Set is a list of opened indexes, the one with the highest priority first. A package that several indexes contain
// counts in the first of them only.
type Set []Indexed

// Indexed is an opened index with its priority.
type Indexed struct {
	// Location is the reference of the index as the user wrote it.
	Location string
	Priority int
	*catalog.Reader
}

// ParseLocation splits REF[,priority]. The priority is 0 if there is none; higher comes first.
func ParseLocation(s string) (location string, priority int, err error) {
	location, number, found := strings.Cut(s, ",")
	if !found {
		return location, 0, nil
	}
	priority, err = strconv.Atoi(strings.TrimSpace(number))
	if err != nil || priority < -1000 || priority > 1000 {
		return "", 0, ErrNoIndex.New(nil, "%q is not the priority of an index", number).
			WithDo("Write REFERENCE,NUMBER with a number from -1000 to 1000; a higher number comes first.")
	}
	return strings.TrimSpace(location), priority, nil
}

// Sort orders the indexes by priority, and indexes of the same priority as they were.
func (s Set) Sort() {
	slices.SortStableFunc(s, func(a, b Indexed) int { return cmp.Compare(b.Priority, a.Priority) })
}

// first reports whether an index is the first one that contains a package.
func (s Set) first(i int, repository string) bool {
	return !slices.ContainsFunc(s[:i], func(other Indexed) bool { return other.Package(repository) != nil })
}

// Lookup returns the kinds with a name in all indexes, those of the first index first; see [catalog.Reader.Lookup].
func (s Set) Lookup(group, kind string) ([]catalog.Kind, error) {
	var out []catalog.Kind
	for i, index := range s {
		kinds, err := index.Lookup(group, kind)
		if err != nil {
			return nil, err
		}
		for _, k := range kinds {
			if s.first(i, k.Repository) {
				out = append(out, k)
			}
		}
	}
	return out, nil
}

// Search returns the hits in all indexes, best first; hits that match equally well are ordered by the priority of their
// indexes.
func (s Set) Search(q catalog.Query, limit int) ([]catalog.Hit, error) {
	var out []catalog.Hit
	for i, index := range s {
		hits, err := s.searchOwn(i, index, q, limit)
		if err != nil {
			return nil, err
		}
		out = append(out, hits...)
	}
	if len(s) > 1 {
		// Within one index the hits are in their order already.
		slices.SortStableFunc(out, func(a, b catalog.Hit) int { return cmp.Compare(b.Score, a.Score) })
	}
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	return out, nil
}

// searchOwn returns the best hits of an index for the packages that no index before it contains. The other hits do not
// count for the limit.
func (s Set) searchOwn(i int, index Indexed, q catalog.Query, limit int) ([]catalog.Hit, error) {
	for most := limit; ; most *= 2 {
		hits, err := index.Search(q, most)
		if err != nil {
			return nil, err
		}
		found := len(hits)
		own := slices.DeleteFunc(hits, func(h catalog.Hit) bool { return !s.first(i, h.Package.Repository) })
		if most == 0 || found < most || len(own) >= limit {
			return own, nil
		}
	}
}

// Package returns the row of a package and the index that contains it, or nil.
func (s Set) Package(repository string) (*catalog.Package, *Indexed) {
	for i := range s {
		if p := s[i].Package(repository); p != nil {
			return p, &s[i]
		}
	}
	return nil, nil
}

// Suggest returns kinds with names similar to one, at most three.
func (s Set) Suggest(kind string) ([]string, error) {
	var out []string
	hits, err := s.Search(catalog.Query{Words: []string{strings.ToLower(kind)}}, 20)
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		if h.Kind != nil && !slices.Contains(out, h.Kind.Kind) {
			out = append(out, h.Kind.Kind)
		}
	}
	return out[:min(len(out), 3)], nil
}
