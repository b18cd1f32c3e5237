// Package retention selects the versions of an index that nothing needs any more, and deletes them.
//
// Only prereleases are deleted: the ones that are older than an age, apart from the newest ones of each package. Kept are also the newest
// version of a package, versions in lock files, versions that the constraint of another package needs, and content that another tag or a
// referrer needs. A deleted version leaves its status, so that a lock file with it fails with the reason.
package retention

import (
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

// Select returns the versions of an index that can be deleted, in the order of the index.
func Select(c *catalog.Catalog, r Rules) []Candidate {
	constraints := constraintsOf(c)
	var out []Candidate
	for i := range c.Histories {
		h := &c.Histories[i]
		for _, v := range r.expired(h, c.Packages[i].Latest, constraints[h.Repository]) {
			out = append(out, Candidate{h.Repository, v})
		}
	}
	return out
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

// expired returns the versions of a package that can be deleted.
func (r Rules) expired(h *catalog.History, latest string, constraints []string) []catalog.Version {
	var kept, old []catalog.Version
	prereleases := 0
	for _, v := range slices.Backward(h.Versions) {
		isPrerelease := isPrerelease(v.Tag)
		switch {
		case isRemoved(v):
			continue
		case !isPrerelease, v.Tag == latest, v.Digest.IsZero(), !r.isOld(v), r.locks(h.Repository, v):
			kept = append(kept, v)
		case prereleases < r.Keep:
			kept = append(kept, v)
		default:
			old = append(old, v)
		}
		if isPrerelease {
			prereleases++
		}
	}
	old = slices.DeleteFunc(old, func(v catalog.Version) bool {
		// The same content under a tag that is kept, such as a release that was promoted.
		return slices.ContainsFunc(kept, func(k catalog.Version) bool { return k.Digest == v.Digest })
	})
	for _, constraint := range constraints {
		old, kept = keepFor(constraint, old, kept)
	}
	slices.Reverse(old)
	return old
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

// Requires reports whether a constraint needs a version of a package: it names the version, or accepts it and no newer version that can be selected.
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

// keepFor moves the newest old version that a constraint accepts to the kept ones, if none of these satisfies it. A version that the
// constraint names is always kept.
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
