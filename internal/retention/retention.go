// Package retention selects the versions of an index that nothing needs any more, and deletes them.
//
// Only prereleases are deleted: the ones that are older than an age, apart from the newest ones of each package. Kept
// are also the newest version of a package, versions in lock files, versions that the constraint of another package
// needs, and content that another tag or a referrer needs. A deleted version leaves its status, so that a lock file
// with it fails with the reason.
package retention

import (
	"fmt"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Rules are the rules by which versions are kept.
type Rules struct {
	// Age is the age from which a prerelease can be deleted. The age is that of the image.
	Age time.Duration
	// Undated makes versions without a time count as old. They are kept otherwise.
	Undated bool
	// Keep is the number of the newest prereleases of each package that are kept at any age.
	Keep int
	// Locks are lock files whose versions are kept.
	Locks []lockfile.File
	Now   time.Time
}

// A Candidate is a version that nothing in an index needs.
type Candidate struct {
	Repository string
	catalog.Version
}

// A Kept is a version that is kept although its status states that the retention has deleted it.
type Kept struct {
	Candidate
	Why Needed
}

// Select returns the versions of an index that can be deleted, in the order of the index. The versions whose deletion
// was interrupted ([Unfinished]) are among them, unless the rules keep them by now: these are returned as kept. Their
// age is not compared, because an index does not have it.
func Select(c *catalog.Catalog, r Rules, unfinished []Candidate) (selected []Candidate, kept []Kept) {
	constraints := constraintsOf(c)
	for i := range c.Histories {
		h := &c.Histories[i]
		exists := func(v catalog.Version) bool {
			return slices.ContainsFunc(
				unfinished, func(u Candidate) bool { return u.Repository == h.Repository && u.Tag == v.Tag },
			)
		}
		old, reasons := r.expired(h, c.Packages[i].Latest, constraints[h.Repository], exists)
		for _, v := range old {
			selected = append(selected, Candidate{h.Repository, v})
		}
		for _, v := range h.Versions {
			if isRemoved(v) && reasons[v.Tag] != "" {
				kept = append(kept, Kept{Candidate{h.Repository, v}, reasons[v.Tag]})
			}
		}
	}
	return selected, kept
}

// constraintsOf returns the constraints of all versions that can be installed, by the repository that they constrain.
func constraintsOf(c *catalog.Catalog) map[string][]string {
	out := map[string][]string{}
	for _, h := range c.Histories {
		for _, v := range h.Versions {
			if isRemoved(v) {
				continue
			}
			for _, d := range v.Dependencies {
				repository := d.Package
				if p := c.Package(repository); p != nil {
					repository = p.Repository // The dependency can name an alias.
				}
				out[repository] = append(out[repository], d.Constraint)
			}
		}
	}
	for repository := range out {
		slices.Sort(out[repository])
		out[repository] = slices.Compact(out[repository])
	}
	return out
}

func isRemoved(v catalog.Version) bool {
	return v.Status != nil && v.Status.State == catalog.Removed
}

// expired returns the versions of a package that can be deleted, and the reasons why the others are kept, by tag.
// Versions with the status removed are omitted unless they exist.
func (r Rules) expired(
	h *catalog.History, latest string, constraints []string, exists func(catalog.Version) bool,
) (old []catalog.Version, reasons map[string]Needed) {
	var kept []catalog.Version
	reasons = map[string]Needed{}
	prereleases := 0
	for _, v := range slices.Backward(h.Versions) {
		if isRemoved(v) && !exists(v) {
			continue
		}
		if why := r.reason(h.Repository, latest, prereleases, v); why != "" {
			kept, reasons[v.Tag] = append(kept, v), why
		} else {
			old = append(old, v)
		}
		if isPrerelease(v.Tag) && !isRemoved(v) {
			prereleases++
		}
	}
	old = slices.DeleteFunc(old, func(v catalog.Version) bool {
		// The same content under a tag that is kept, such as a release that was promoted.
		i := slices.IndexFunc(kept, func(k catalog.Version) bool { return k.Digest == v.Digest })
		if i >= 0 {
			reasons[v.Tag] = Needed(kept[i].Tag + " has the same content")
		}
		return i >= 0
	})
	for _, constraint := range constraints {
		before := len(kept)
		old, kept = keepFor(constraint, old, kept)
		for _, v := range kept[before:] {
			reasons[v.Tag] = Needed(fmt.Sprintf("a package in the index requires %.200q", constraint))
		}
	}
	slices.Reverse(old)
	return old, reasons
}

// reason returns the reason why a version is kept whatever other versions and constraints there are, and "" if there is
// none. newer is the number of newer prereleases.
func (r Rules) reason(repository, latest string, newer int, v catalog.Version) Needed {
	switch {
	case !isPrerelease(v.Tag):
		return "it is no prerelease"
	case v.Tag == latest:
		return "it is the newest version of its package"
	case v.Digest.IsZero():
		return "its digest is not known"
	case r.locks(repository, v):
		return "a lock file contains it"
	case !isRemoved(v) && !r.isOld(v):
		return "it is not old enough"
	case newer < r.Keep:
		return Needed(fmt.Sprintf("it is one of the newest %d prereleases (--keep)", r.Keep))
	}
	return ""
}

func (r Rules) isOld(v catalog.Version) bool {
	if v.Created.IsZero() {
		return r.Undated
	}
	return r.Now.Sub(v.Created) >= r.Age
}

func isPrerelease(tag string) bool {
	v := version.Parse(tag)
	return v.Usable() && v.Prerelease()
}

// locks reports whether a lock file contains a version.
func (r Rules) locks(repository string, v catalog.Version) bool {
	return slices.ContainsFunc(r.Locks, func(f lockfile.File) bool {
		return slices.ContainsFunc(f.Packages, func(p lockfile.Package) bool {
			return p.Digest == v.Digest || p.Repository == repository && p.Version == v.Tag
		})
	})
}

// Requires reports whether a constraint needs a version of a package: it names the version, or accepts it and no newer
// version that can be selected.
func Requires(constraint string, versions []catalog.Version, tag string) bool {
	c := version.ParseConstraint(constraint)
	for _, v := range slices.Backward(versions) {
		switch {
		case v.Tag == tag:
			return v.Digest.String() == constraint || c.Pinned() == tag || c.Accepts(tag)
		case c.Accepts(v.Tag) && !v.Status.Excludes() && v.Error == nil:
			return slices.ContainsFunc(versions, func(v catalog.Version) bool {
				return v.Tag == tag && v.Digest.String() == constraint || c.Pinned() == tag
			})
		}
	}
	return false
}

// keepFor moves the newest old version that a constraint accepts to the kept ones, if none of these satisfies it. A
// version that the constraint names is always kept.
func keepFor(constraint string, old, kept []catalog.Version) (remaining, all []catalog.Version) {
	c := version.ParseConstraint(constraint)
	accepts := func(v catalog.Version) bool {
		return v.Digest.String() == constraint || c.Pinned() == v.Tag || c.Accepts(v.Tag)
	}
	usable := func(v catalog.Version) bool { return accepts(v) && !v.Status.Excludes() && v.Error == nil }
	named := func(v catalog.Version) bool { return v.Digest.String() == constraint || c.Pinned() == v.Tag }
	satisfied := slices.ContainsFunc(kept, usable)
	for _, v := range old {
		if named(v) || !satisfied && accepts(v) {
			kept, satisfied = append(kept, v), satisfied || usable(v)
		} else {
			remaining = append(remaining, v)
		}
	}
	return remaining, kept
}
