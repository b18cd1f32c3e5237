package provide

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// A Source knows packages and the kinds that they provide, such as an index.
type Source interface {
	// Candidates returns the candidates whose names the kind matches.
	Candidates(kind dependency.KindRef) []Candidate
	// Group returns all kinds of an API group, one candidate for each package and kind, including those with the role
	// Former. Versions are not selected.
	Group(group string) []Candidate
	// Kinds returns all kinds, for suggestions.
	Kinds() []dependency.KindRef
}

// A VersionSource is a source that knows which versions of Crossplane packages require.
type VersionSource interface {
	Source
	// ForCrossplane returns the source with the version of Crossplane that runs: fits reports whether a constraint accepts
	// it. Versions of packages that do not work with it cannot be installed.
	ForCrossplane(fits func(constraint string) bool) Source
}

// A Finder selects the providers of kinds from sources. It implements [resolver.Kinds].
type Finder struct {
	Sources []Source
	// Load returns further sources at the first use; nil means none.
	Load func(ctx context.Context) ([]Source, error)
	// Crossplane returns a function that reports whether a constraint accepts the version of Crossplane that runs, or nil
	// to accept every constraint, at the first use. It may be nil.
	Crossplane func(ctx context.Context) (fits func(constraint string) bool, err error)
	// Held returns the names of the CRDs of an API group that exist in the cluster, with the repositories of the packages
	// that hold them, or "" for a CRD that no package holds. It may be nil. The publishers of the packages count among
	// those of the group, and a CRD that no package holds counts as another publisher.
	Held func(ctx context.Context, group string) (map[string]string, error)
	// Holders and Present are as in Request.
	Holders map[string]string
	Present map[string]bool
	// Selected maps kinds to the repositories that the user has selected. They are treated as recorded.
	Selected map[dependency.KindRef]string
	// Command is as in Describe.
	Command func(kind dependency.KindRef, c Candidate) string
	// Unrecorded and Unindexed are as in Describe.
	Unrecorded, Unindexed bool
	// Schemas compares the schemas of the candidates for a kind; nil if they are not known.
	Schemas func(ctx context.Context, kind dependency.KindRef, candidates []Candidate) map[string]Difference

	once   sync.Once
	loaded []Source
	err    error

	mu sync.Mutex
	// last are the rankings of the last kinds that were required together, for the next one of them.
	last struct {
		key      string
		rankings []Ranking
	}
}

// sources returns all sources.
func (f *Finder) sources(ctx context.Context) ([]Source, error) {
	f.once.Do(func() { f.loaded, f.err = f.load(ctx) })
	return f.loaded, f.err
}

// Named returns the repositories of the indexes with a path in any registry, such as crossplane-contrib/provider-nop.
func (f *Finder) Named(ctx context.Context, path string) ([]string, error) {
	sources, err := f.sources(ctx)
	var out []string
	for _, s := range sources {
		if index, ok := s.(Catalog); ok {
			out = append(out, index.named(path)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// load returns all sources with the version of Crossplane that runs.
func (f *Finder) load(ctx context.Context) ([]Source, error) {
	all := slices.Clone(f.Sources)
	if f.Load != nil {
		more, err := f.Load(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	if f.Crossplane == nil || len(all) == 0 {
		return all, nil
	}
	fits, err := f.Crossplane(ctx)
	if err != nil || fits == nil {
		return all, err
	}
	for i, s := range all {
		if v, ok := s.(VersionSource); ok {
			all[i] = v.ForCrossplane(fits)
		}
	}
	return all, nil
}

var _ resolver.Kinds = (*Finder)(nil)

// Rank ranks the candidates of all sources.
func (f *Finder) Rank(ctx context.Context, q Request) (Ranking, error) {
	sources, err := f.sources(ctx)
	if err != nil {
		return Ranking{}, err
	}
	var all, group []Candidate
	for _, s := range sources {
		all = append(all, s.Candidates(q.Kind)...)
		group = append(group, s.Group(q.Kind.Group)...)
	}
	settleOwners(group, all, group)
	if q.Holders == nil {
		q.Holders = f.Holders
	}
	if q.Recorded == "" {
		q.Recorded = recorded(sources, q.Kind, f.Selected)
	}
	q.Present = union(q.Present, f.Present)
	q = q.located()
	if kept := withoutDownloads(matching(q.Kind, all), q); len(kept) > 0 {
		all, group = kept, withoutDownloads(group, q)
	}
	q.GroupPublishers = Publishers(group)
	if f.Held != nil {
		held, err := f.Held(ctx, q.Kind.Group)
		if err != nil {
			return Ranking{}, err
		}
		q.GroupPublishers = append(q.GroupPublishers, holders(held, slices.Concat(group, all))...)
	}
	return Rank(q, all), nil
}

// holders returns the publishers of the packages that hold CRDs, and the CRDs that no package holds. A repository that
// is among the candidates has their publisher.
func holders(held map[string]string, known []Candidate) []string {
	var out []string
	for crd, repository := range held {
		at := slices.IndexFunc(known, func(c Candidate) bool { return oci.SameRepository(c.Repository, repository) })
		switch {
		case repository == "":
			out = append(out, "the CRD "+crd)
		case at >= 0:
			out = append(out, known[at].publisher())
		default:
			out = append(out, Candidate{Repository: repository}.publisher())
		}
	}
	return out
}

// withoutDownloads returns the candidates that an index or a user has named, or that are present or recorded. Content
// that was only downloaded is used if there are no others, so that a download never changes a selection.
func withoutDownloads(all []Candidate, q Request) []Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool {
		return c.Downloaded && !q.has(c) && !q.isRecorded(c)
	})
}

// Err returns the error of a ranking that is not decided, or nil.
func (f *Finder) Err(ctx context.Context, r Ranking) error {
	d := Describe{
		Command: func(c Candidate) string { return f.command(r.Kind, c) }, Alike: f.alike, Unrecorded: f.Unrecorded,
		Unindexed: f.Unindexed,
	}
	if f.Schemas != nil && r.Decided == "" && len(r.Order) > 1 {
		d.Schemas = f.Schemas(ctx, r.Kind, r.Order[:min(len(r.Order), maxOptions)])
	}
	return r.Err(d)
}

func (f *Finder) command(kind dependency.KindRef, c Candidate) string {
	if f.Command != nil {
		return f.Command(kind, c)
	}
	return InstallCommand(c)
}

// InstallCommand returns the command that installs a candidate by its name.
func InstallCommand(c Candidate) string {
	return strings.Join(slices.DeleteFunc(
		[]string{"xpkg install", strings.ToLower(c.Type), wording.ShellWord(c.Ref())}, func(s string) bool { return s == "" },
	), " ")
}

func (f *Finder) alike(k dependency.KindRef) []string {
	var all []dependency.KindRef
	for _, s := range f.loaded {
		all = append(all, s.Kinds()...)
	}
	slices.SortFunc(all, func(a, b dependency.KindRef) int { return cmp.Compare(a.String(), b.String()) })
	return Alike(k, slices.Compact(all))
}

// Providers implements [resolver.Kinds].
func (f *Finder) Providers(ctx context.Context, q resolver.KindQuery) (resolver.Providers, error) {
	sources, err := f.sources(ctx)
	if err != nil {
		return resolver.Providers{}, err
	}
	selected := maps.Clone(q.Recorded)
	if selected == nil {
		selected = map[dependency.KindRef]string{}
	}
	maps.Copy(selected, f.Selected)
	all, err := f.rankEach(ctx, q, func(k dependency.KindRef) string { return recorded(sources, k, selected) })
	if err != nil {
		return resolver.Providers{}, err
	}
	r := all[slices.IndexFunc(all, func(r Ranking) bool { return r.Kind == q.Kind })]
	err = f.Err(ctx, r)
	if len(r.Order) == 0 {
		return resolver.Providers{Conflicting: r.Conflicting}, err
	}
	out := resolver.Providers{Undecided: err}
	for _, c := range r.Allowed() {
		out.Candidates = append(out.Candidates, resolver.Provider{Repository: c.Repository, Constraint: c.Constraint})
	}
	for _, c := range r.Dropped {
		if c.Role == Defines {
			out.Others = append(out.Others, c.Repository)
		}
	}
	return out, nil
}

// rankEach ranks the candidates of the kinds of a query together. A resolver asks for each of the kinds.
func (f *Finder) rankEach(
	ctx context.Context, q resolver.KindQuery, recorded func(dependency.KindRef) string,
) ([]Ranking, error) {
	kinds := q.Together
	if !slices.Contains(kinds, q.Kind) {
		kinds = append(slices.Clip(kinds), q.Kind)
	}
	key := fmt.Sprint(kinds, q.Recorded, q.Present)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last.key == key {
		return f.last.rankings, nil
	}
	var all []Ranking
	for _, k := range kinds {
		r, err := f.Rank(ctx, Request{Kind: k, Recorded: recorded(k), Present: q.Present})
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	f.last.key, f.last.rankings = key, f.together(all)
	return f.last.rankings, nil
}

// RankTogether ranks the candidates of kinds that are required together: all of them are to be installed beside each
// other; see [Together]. It replaces a reference to all kinds of a group by the known kinds, without those whose
// packages conflict with packages for other kinds. The request has no kind.
func (f *Finder) RankTogether(ctx context.Context, kinds []dependency.KindRef, q Request) ([]Ranking, error) {
	var all []Ranking
	groups := map[string]bool{} // the groups of which all kinds are required
	for _, k := range kinds {
		each := []dependency.KindRef{k}
		if k.IsAll() {
			known, err := f.Expand(ctx, k, q.RecordedKinds)
			if err != nil {
				return nil, err
			}
			if len(known) > 0 {
				each = known
				groups[k.Group+"/"+k.Version] = true
			}
		}
		for _, one := range each {
			if slices.ContainsFunc(all, func(r Ranking) bool { return r.Kind == one }) {
				continue
			}
			q.Kind, q.Recorded = one, q.RecordedKinds[one]
			r, err := f.Rank(ctx, q)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
	}
	all = f.together(all)
	provided := map[string]bool{}
	for _, r := range all {
		provided[r.Kind.Group+"/"+r.Kind.Version] = provided[r.Kind.Group+"/"+r.Kind.Version] || !r.Conflicting
	}
	return slices.DeleteFunc(all, func(r Ranking) bool {
		key := r.Kind.Group + "/" + r.Kind.Version
		return r.Conflicting && groups[key] && provided[key] && !slices.Contains(kinds, r.Kind)
	}), nil
}

// together refines rankings with the CRDs that packages define according to the sources.
func (f *Finder) together(all []Ranking) []Ranking {
	if len(all) < 2 {
		return all
	}
	groups := map[string]bool{}
	var kinds []Candidate
	for _, r := range all {
		if groups[r.Kind.Group] {
			continue
		}
		groups[r.Kind.Group] = true
		for _, s := range f.loaded {
			kinds = append(kinds, s.Group(r.Kind.Group)...)
		}
	}
	priority := map[string]int{}
	for _, c := range kinds {
		if p, ok := priority[c.Repository]; !ok || c.Priority < p {
			priority[c.Repository] = c.Priority
		}
	}
	defined := map[string][]string{}
	for _, c := range kinds {
		// As in mergeSources, another source cannot change facts about a package.
		if c.Role == Defines && c.Priority == priority[c.Repository] {
			defined[c.Repository] = append(defined[c.Repository], c.CRD())
		}
	}
	return Together(all, defined)
}

// recorded returns the repository that was selected before for a kind, under any of its names and in any API version.
func recorded(sources []Source, kind dependency.KindRef, selected map[dependency.KindRef]string) string {
	if repository := selected[kind]; repository != "" || len(selected) == 0 {
		return repository
	}
	names := []string{kind.Name}
	for _, s := range sources {
		for _, c := range s.Group(kind.Group) {
			if kind.Matches(c.Group, c.Kind, c.Plural, c.Singular) {
				names = append(names, c.Kind, c.Plural, c.Singular)
			}
		}
	}
	var found []string
	for k, repository := range selected {
		if !k.IsAll() && k.Matches(kind.Group, names...) {
			found = append(found, repository)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

// Expand implements [resolver.Kinds]. If the owner of the group is known, the reference means the kinds of its
// packages, and those for which another package was selected before: no other publisher can add a kind to it.
func (f *Finder) Expand(
	ctx context.Context, ref dependency.KindRef, recorded map[dependency.KindRef]string,
) ([]dependency.KindRef, error) {
	sources, err := f.sources(ctx)
	if err != nil {
		return nil, err
	}
	var group []Candidate
	for _, s := range sources {
		group = append(group, s.Group(ref.Group)...)
	}
	settleOwners(group, group)
	group = slices.DeleteFunc(group, func(c Candidate) bool {
		return c.Role != Defines || ref.Version != "" && !slices.Contains(c.Served, ref.Version)
	})
	if kept := withoutDownloads(group, Request{}); len(kept) > 0 {
		group = kept
	}
	isRecorded := func(c Candidate) bool {
		for _, selected := range []map[dependency.KindRef]string{recorded, f.Selected} {
			for k := range selected {
				if !k.IsAll() && k.Matches(c.Group, c.Kind, c.Plural, c.Singular) {
					return true
				}
			}
		}
		return false
	}
	var out []dependency.KindRef
	owns := ownership(group)
	for _, c := range group {
		if owns == nil || owns(c) || isRecorded(c) {
			out = append(out, c.KindRef(ref.Version))
		}
	}
	slices.SortFunc(out, func(a, b dependency.KindRef) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out), nil
}

// settleOwners removes the ownership of an API group from the candidates in lists that the sources with the highest
// priority of those that know an owner do not confirm: another source cannot claim the group. If these sources name
// different owners, none is proven. The candidates of the group are those of all sources.
func settleOwners(group []Candidate, lists ...[]Candidate) {
	owners := slices.DeleteFunc(slices.Clone(group), func(c Candidate) bool { return !c.OwnsGroup })
	if len(owners) == 0 {
		return
	}
	highest := slices.MinFunc(owners, func(a, b Candidate) int { return cmp.Compare(a.Priority, b.Priority) }).Priority
	named := map[string]map[string]bool{} // Organisations by source.
	for _, c := range owners {
		if c.Priority != highest {
			continue
		}
		if named[c.Source] == nil {
			named[c.Source] = map[string]bool{}
		}
		named[c.Source][c.organisation()] = true
	}
	confirmed := func(c Candidate) bool {
		for _, organisations := range named {
			if !organisations[c.organisation()] {
				return false
			}
		}
		return true
	}
	for _, list := range lists {
		for i := range list {
			list[i].OwnsGroup = list[i].OwnsGroup && confirmed(list[i])
		}
	}
}

// ownership returns a function that reports whether a candidate is a package of the owner of the group, or nil if the
// owner is not known. The source with the highest priority decides, so that another one cannot claim the group.
func ownership(group []Candidate) func(Candidate) bool {
	if len(group) == 0 {
		return nil
	}
	highest := slices.MinFunc(group, func(a, b Candidate) int { return cmp.Compare(a.Priority, b.Priority) }).Priority
	owns := func(c Candidate) bool { return c.OwnsGroup && c.Priority == highest }
	if !slices.ContainsFunc(group, owns) {
		return nil
	}
	return owns
}

func union(a, b map[string]bool) map[string]bool {
	if len(b) == 0 {
		return a
	}
	out := map[string]bool{}
	for _, m := range []map[string]bool{a, b} {
		for k, v := range m {
			out[k] = out[k] || v
		}
	}
	return out
}
