package registry

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/retention"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// View is the part of the index that one subject may read. Everything else is absent from its lists, counts and search
// results.
type View struct {
	site    *Site
	subject access.Subject
	policy  *access.Policy
	parts   []*part
}

// ViewOf returns the view of the sender of a request.
func (s *Site) ViewOf(r *http.Request) *View { return s.view(s.options.Identify(r)) }

func (s *Site) view(subject access.Subject) *View {
	return &View{site: s, subject: subject, policy: s.options.Policy(), parts: s.visible(subject)}
}

// visible reports whether the subject may read a package. Every row of every result passes it: the policy can have
// changed since the partitions were built.
func (v *View) visible(repository string) bool {
	path, ok := v.site.Path(repository)
	return ok && v.policy.May(v.subject, path, access.Read)
}

// Config returns the configuration of the public index with the counts of the view.
func (v *View) Config() catalog.Config {
	var config catalog.Config
	if len(v.parts) > 0 {
		config = v.parts[0].catalog.Config
	}
	config.Counts = catalog.Counts{}
	for _, p := range v.parts {
		for i := range p.catalog.Packages {
			if row := &p.catalog.Packages[i]; v.visible(row.Repository) {
				config.Counts.Packages++
				config.Counts.Kinds += row.Kinds
				if h := p.catalog.History(row.Repository); h != nil {
					config.Counts.Versions += len(h.Versions)
				}
			}
		}
	}
	return config
}

// Packages returns the packages, ordered by repository.
func (v *View) Packages() []catalog.Package {
	var found []catalog.Package
	for _, p := range v.parts {
		for i := range p.catalog.Packages {
			if v.visible(p.catalog.Packages[i].Repository) {
				found = append(found, p.row(&p.catalog.Packages[i]))
			}
		}
	}
	slices.SortFunc(found, func(a, b catalog.Package) int { return strings.Compare(a.Repository, b.Repository) })
	return found
}

// Package returns a package with its history, and false if there is none. The repository can omit the host.
func (v *View) Package(repository string) (catalog.Package, catalog.History, bool) {
	if _, ok := v.site.Path(repository); !ok {
		repository = v.site.options.Host + "/" + repository
	}
	for _, p := range v.parts {
		row := p.catalog.Package(repository)
		if row == nil || !v.visible(row.Repository) {
			continue
		}
		if h := p.catalog.History(row.Repository); h != nil {
			return p.row(row), *h, true
		}
	}
	return catalog.Package{}, catalog.History{}, false
}

// Published returns the times at which the server first saw the versions of a package, by tag.
func (v *View) Published(repository string) map[string]time.Time {
	for _, p := range v.parts {
		if p.catalog.History(repository) != nil && v.visible(repository) {
			return p.published(repository)
		}
	}
	return nil
}

// Kinds returns the kinds with a name in a group, in the order of a catalog, at most limit. Empty strings select all.
func (v *View) Kinds(group, kind string, limit int) []catalog.Kind {
	var found []catalog.Kind
	for _, p := range v.parts {
		candidates := p.catalog.Kinds
		if kind != "" {
			candidates = p.catalog.Lookup(group, kind)
		}
		for i := range candidates {
			if k := &candidates[i]; (group == "" || k.Group == group) && v.visible(k.Repository) {
				if found = append(found, *k); len(v.parts) == 1 && len(found) == limit {
					return found
				}
			}
		}
	}
	if len(v.parts) > 1 {
		slices.SortStableFunc(found, compareKinds)
	}
	return found[:min(len(found), limit)]
}

// Dependent is a version that depends on a package.
type Dependent struct {
	Repository, Tag, Constraint string
	Optional                    bool
}

// Dependents returns the packages whose newest version depends on a package, ordered by repository.
func (v *View) Dependents(repository string) []Dependent {
	var found []Dependent
	for _, p := range v.parts {
		for i := range p.catalog.Packages {
			row := &p.catalog.Packages[i]
			h := p.catalog.History(row.Repository)
			if h == nil || !v.visible(row.Repository) {
				continue
			}
			if newest := h.Find(row.Latest); newest != nil {
				for _, d := range newest.Dependencies {
					if d.Package == repository {
						found = append(found, Dependent{row.Repository, newest.Tag, d.Constraint, d.Optional})
					}
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b Dependent) int { return strings.Compare(a.Repository, b.Repository) })
	return found
}

// Requires reports whether the constraint of a version of any package needs a version of a package.
func (v *View) Requires(repository, tag string) bool {
	row, of, ok := v.Package(repository)
	if !ok {
		return false
	}
	isIt := func(name string) bool { return name == row.Repository || slices.Contains(row.Aliases, name) }
	for _, p := range v.parts {
		for _, h := range p.catalog.Histories {
			if !v.visible(h.Repository) {
				continue
			}
			for _, dependent := range h.Versions {
				if dependent.Status != nil && dependent.Status.State == catalog.Removed {
					continue
				}
				for _, d := range dependent.Dependencies {
					if isIt(d.Package) && retention.Requires(d.Constraint, of.Versions, tag) {
						return true
					}
				}
			}
		}
	}
	return false
}

// Owner is the owner of an API group.
type Owner struct {
	// Publisher is the repository of the owner, or the prefix of its repositories, as the policy or the index names it.
	Publisher string
	// Repository is the publisher with the registry.
	Repository string
	// Proof states how the ownership is known.
	Proof string
}

// GroupOwner returns the owner of an API group: the one in the policy, otherwise the only package with kinds of the
// group. The zero value means that it is not known: of several packages, any could state the earliest time.
func (v *View) GroupOwner(group string) Owner {
	if owner, ok := v.policy.Owner(group); ok && (v.policy.May(v.subject, owner, access.Read) || v.knows(owner)) {
		return Owner{owner, v.site.options.Host + "/" + owner, "configuration of the registry"}
	}
	only := ""
	for _, k := range v.Kinds(group, "", mostKinds) {
		switch {
		case k.Role == catalog.Input, k.Repository == only:
		case only != "":
			return Owner{}
		default:
			only = k.Repository
		}
	}
	if only == "" {
		return Owner{}
	}
	return Owner{only, only, "only package with kinds of the group"}
}

// mostKinds limits the kinds of a group that are considered.
const mostKinds = 10000

// knows reports whether the subject may know an owner: a repository or a prefix.
func (v *View) knows(owner string) bool {
	return slices.ContainsFunc(v.Packages(), func(p catalog.Package) bool {
		path, _ := v.site.Path(p.Repository)
		return path == owner || strings.HasPrefix(path, owner+"/")
	})
}

// Search returns the kinds and packages that match a query, best first, at most limit. It waits while too many searches
// run.
func (v *View) Search(ctx context.Context, q catalog.Query, limit int) ([]catalog.Hit, error) {
	select {
	case v.site.searches <- struct{}{}:
		defer func() { <-v.site.searches }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var all []catalog.Hit
	for _, p := range v.parts {
		hits := p.search.Search(q, limit, v.visible)
		for i := range hits {
			row := p.row(hits[i].Package)
			hits[i].Package = &row
		}
		all = append(all, hits...)
	}
	if len(v.parts) > 1 {
		slices.SortStableFunc(all, func(a, b catalog.Hit) int { return b.Score - a.Score })
	}
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all, nil
}

// compareKinds orders kinds like a catalog.
func compareKinds(a, b catalog.Kind) int {
	return cmp.Or(
		strings.Compare(strings.ToLower(a.Kind), strings.ToLower(b.Kind)), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Group, b.Group),
		strings.Compare(a.Repository, b.Repository), strings.Compare(string(a.Role), string(b.Role)),
	)
}
