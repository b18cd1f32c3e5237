package provide

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// A Catalog is the source of an index.
type Catalog struct {
	*catalog.Catalog
	// Name and Priority are those of the candidates.
	Name     string
	Priority int
	// Fits reports whether a constraint accepts the version of Crossplane; nil accepts every constraint.
	Fits func(constraint string) bool
}

var _ VersionSource = Catalog{}

// ForCrossplane implements [VersionSource].
func (s Catalog) ForCrossplane(fits func(constraint string) bool) Source {
	s.Fits = fits
	return s
}

// named returns the repositories with a path in any registry.
func (s Catalog) named(path string) []string {
	var out []string
	for _, p := range s.Packages {
		if _, rest, _ := strings.Cut(p.Repository, "/"); rest == path {
			out = append(out, p.Repository)
		}
	}
	return out
}

// Candidates implements [Source].
func (s Catalog) Candidates(kind dependency.KindRef) []Candidate {
	var out []Candidate
	for i := range s.Catalog.Kinds {
		k := &s.Catalog.Kinds[i]
		if kind.Matches(k.Group, k.Kind, k.Plural, k.Singular) && !isDuplicate(s.Catalog.Kinds, i) {
			c := s.candidate(k)
			s.selectVersion(&c, kind.Version)
			out = append(out, c)
		}
	}
	return append(out, s.removedKinds(kind)...)
}

// removedKinds returns the candidates of a kind that only other versions of packages than the newest define.
func (s Catalog) removedKinds(kind dependency.KindRef) []Candidate {
	if kind.IsAll() {
		return nil // It means the kinds that are there now.
	}
	var out []Candidate
	for i := range s.Histories {
		h := &s.Histories[i]
		for _, k := range h.Kinds {
			plural, isNamed := nameOf(kind, k)
			if !isNamed || s.isCurrent(h.Repository, k) || len(intervalsOf(h, k.Group, k.Kind, kind.Version)) == 0 {
				continue
			}
			c := s.candidate(&catalog.Kind{Repository: h.Repository, Kind: k.Kind, Group: k.Group, Plural: plural})
			if c.Type == v1.FunctionKind {
				continue // Its kinds are inputs.
			}
			c.Removed = true
			s.selectVersion(&c, kind.Version)
			c.Served = servedBy(h, k, c.Version)
			out = append(out, c)
		}
	}
	return out
}

// nameOf reports whether a reference names a kind in a history, which does not have the names of the resource, and
// returns the plural name if the reference has it. The content of the package is read before it is selected, and
// decides.
func nameOf(kind dependency.KindRef, k catalog.KindHistory) (plural string, isNamed bool) {
	if kind.Group != k.Group || kind.Name == "" || k.Kind == "" {
		return "", false
	}
	if strings.EqualFold(kind.Name, k.Kind) {
		return "", true
	}
	stem, last := k.Kind[:len(k.Kind)-1], k.Kind[len(k.Kind)-1:]
	for _, ending := range []string{last + "s", last + "es", "ies"} {
		isRegular := ending != "ies" || strings.EqualFold(last, "y")
		at := len(stem)
		if isRegular && len(kind.Name) == at+len(ending) && strings.EqualFold(kind.Name[:at], stem) &&
			strings.EqualFold(kind.Name[at:], ending) {
			return strings.ToLower(kind.Name), true
		}
	}
	return "", false
}

// isCurrent reports whether the newest version of a package has a kind, in any role.
func (s Catalog) isCurrent(repository string, k catalog.KindHistory) bool {
	return slices.ContainsFunc(s.Catalog.Kinds, func(c catalog.Kind) bool {
		return c.Repository == repository && c.Kind == k.Kind && c.Group == k.Group
	})
}

// servedBy returns the API versions of a kind that a version of a package serves.
func servedBy(h *catalog.History, k catalog.KindHistory, tag string) []string {
	var out []string
	for _, i := range k.Intervals {
		if within(h, []catalog.Interval{i}, tag) {
			out = append(out, i.Version)
		}
	}
	return out
}

// isDuplicate reports whether a package lists the kind before in another role.
func isDuplicate(kinds []catalog.Kind, i int) bool {
	return i > 0 && kinds[i-1].Repository == kinds[i].Repository && kinds[i-1].Kind == kinds[i].Kind &&
		kinds[i-1].Group == kinds[i].Group
}

// Group implements [Source].
func (s Catalog) Group(group string) []Candidate {
	var out []Candidate
	for i := range s.Catalog.Kinds {
		if k := &s.Catalog.Kinds[i]; k.Group == group {
			out = append(out, s.candidate(k))
		}
	}
	return append(out, s.formerKinds(group, out)...)
}

// formerKinds returns the kinds of an API group that the newest versions of packages do not have, and the owner that
// the index states if it has none of the current ones: a publisher does not lose a group to another one by moving its
// kinds.
func (s Catalog) formerKinds(group string, current []Candidate) []Candidate {
	type key struct{ repository, kind string }
	known, isOwnerKnown := map[key]bool{}, false
	for _, c := range current {
		known[key{c.Repository, c.Kind}] = true
		isOwnerKnown = isOwnerKnown || c.OwnsGroup && c.Role == Defines
	}
	var out []Candidate
	for i := range s.Histories {
		h := &s.Histories[i]
		for _, k := range h.Kinds {
			if k.Group != group || known[key{h.Repository, k.Kind}] {
				continue
			}
			c := s.candidate(&catalog.Kind{Repository: h.Repository, Kind: k.Kind, Group: group})
			if c.Type == v1.FunctionKind {
				continue // Its kinds are inputs.
			}
			c.Role = Former
			out = append(out, c)
		}
	}
	if owner, stated := s.Config.GroupOwner(group); stated && !isOwnerKnown {
		out = append(out, Candidate{
			Repository: owner.Owner, Group: group, Role: Former, OwnsGroup: true, Source: s.Name, Priority: s.Priority,
		})
	}
	return out
}

// Kinds implements [Source].
func (s Catalog) Kinds() []dependency.KindRef {
	var out []dependency.KindRef
	for _, k := range s.Catalog.Kinds {
		if k.Role != catalog.Input && k.Role != catalog.Elsewhere && strings.Contains(k.Group, ".") {
			out = append(out, dependency.KindRef{Name: k.Kind, Group: k.Group})
		}
	}
	return out
}

// candidate returns the candidate of a kind of the newest version of a package.
func (s Catalog) candidate(k *catalog.Kind) Candidate {
	c := Candidate{
		Repository: k.Repository, Kind: k.Kind, Group: k.Group, Plural: k.Plural, Singular: k.Singular, Served: k.Served,
		Role: roleOf(k.Role), Source: s.Name, Priority: s.Priority,
	}
	p := s.Package(k.Repository)
	if p == nil {
		return c
	}
	c.Type, c.Version, c.Cost, c.Deprecated = p.Type, p.Latest, p.Kinds, p.Deprecated
	c.ReplacedBy, c.Aliases = p.ReplacedBy, p.Aliases
	if !p.Updated.IsZero() {
		c.Updated = p.Updated.Unix()
	}
	c.Digest = s.digest(k.Repository, p.Latest)
	c.Publisher, c.Verified = p.Publisher, p.Publisher != "" && p.Verified != ""
	if owner, known := s.Config.GroupOwner(k.Group); known {
		c.OwnsGroup = owner.Covers(k.Repository)
	} else {
		c.OwnsGroup = c.Verified && ownsGroup(p.Verified, k.Group)
	}
	return c
}

// VerifiedDomain starts the value of [catalog.Package.Verified] of a publisher that has proved the control of a domain,
// which follows. The publisher owns the API groups of the domain.
const VerifiedDomain = "domain:"

func ownsGroup(verified, group string) bool {
	domain, ok := strings.CutPrefix(verified, VerifiedDomain)
	// A top-level domain has no owner that publishes packages.
	return ok && strings.Contains(domain, ".") && (group == domain || strings.HasSuffix(group, "."+domain))
}

func roleOf(r catalog.Role) Role {
	switch r {
	case catalog.Input:
		return Input
	case catalog.Elsewhere:
		return Elsewhere
	}
	return Defines
}

// Dependencies returns the dependencies of the version of a package that a constraint selects, according to the index.
func (s Catalog) Dependencies(repository, constraint string) []dependency.Dependency {
	h := s.History(repository)
	if h == nil {
		return nil
	}
	var tags []string
	for _, v := range h.Versions {
		tags = append(tags, v.Tag)
	}
	c := version.ParseConstraint(constraint)
	tag := version.ParsePin(c.Pinned()).Tag
	if fit := c.Filter(tags); len(fit) > 0 {
		tag = fit[0]
	}
	if i := slices.Index(tags, tag); i >= 0 {
		return h.Versions[i].Dependencies
	}
	return nil
}

// digest returns the digest of a version, or zero if it is not known.
func (s Catalog) digest(repository, tag string) oci.Digest {
	if h := s.History(repository); h != nil {
		for _, v := range slices.Backward(h.Versions) {
			if v.Tag == tag {
				return v.Digest
			}
		}
	}
	return oci.Digest{}
}

// selectVersion selects the newest version of the package that serves an API version of the kind, and the constraint
// for all of them. Without a history, it selects the newest version of the package.
func (s Catalog) selectVersion(c *Candidate, apiVersion string) {
	h := s.History(c.Repository)
	if h == nil {
		return
	}
	intervals := intervalsOf(h, c.Group, c.Kind, apiVersion)
	if len(intervals) == 0 {
		return // The version does not serve the API version; Rank reports which ones it serves.
	}
	c.Version, c.Unusable = "", "none of its versions can be installed"
	if apiVersion != "" {
		c.Served = []string{apiVersion}
	}
	for _, prerelease := range []bool{false, true} {
		for _, v := range slices.Backward(h.Versions) {
			if within(h, intervals, v.Tag) && isPrerelease(v.Tag) == prerelease && s.usable(v, c) {
				c.Version, c.Digest, c.Cost, c.Unusable = v.Tag, v.Digest, v.Kinds, ""
				c.Deprecated = c.Deprecated || v.Status != nil && v.Status.State == catalog.Deprecated
				if !v.Created.IsZero() {
					c.Updated = v.Created.Unix()
				}
				c.Constraint = constraintOf(intervals, v.Tag)
				return
			}
		}
	}
}

// usable reports whether a version can be installed. Otherwise, it records the reason.
func (s Catalog) usable(v catalog.Version, c *Candidate) bool {
	switch {
	case v.Error != nil:
		c.Unusable = fmt.Sprintf("its version %s cannot be read: %s", v.Tag, v.Error.Code)
	case v.Status.Excludes():
		c.Unusable = fmt.Sprintf("its version %s was %s", v.Tag, v.Status.State)
	case s.Fits != nil && v.Crossplane != "" && !s.Fits(v.Crossplane):
		c.Unusable = requiresCrossplane(v.Tag, v.Crossplane)
	default:
		return true
	}
	return false
}

// requiresCrossplane returns the reason why a version of a package does not work with the Crossplane that runs.
func requiresCrossplane(version, constraint string) string {
	return fmt.Sprintf("its version %s requires Crossplane %s", version, constraint)
}

func isPrerelease(tag string) bool {
	v := version.Parse(tag)
	return v.Usable() && v.Prerelease()
}

// intervalsOf returns the intervals in which a package serves an API version of a kind, or any API version.
func intervalsOf(h *catalog.History, group, kind, apiVersion string) []catalog.Interval {
	var out []catalog.Interval
	for _, k := range h.Kinds {
		if k.Group != group || k.Kind != kind {
			continue
		}
		for _, i := range k.Intervals {
			if apiVersion == "" || i.Version == apiVersion {
				out = append(out, i)
			}
		}
	}
	return out
}

// within reports whether a version is in one of the intervals.
func within(h *catalog.History, intervals []catalog.Interval, tag string) bool {
	position := func(tag string) int {
		return slices.IndexFunc(h.Versions, func(v catalog.Version) bool { return v.Tag == tag })
	}
	at := position(tag)
	return slices.ContainsFunc(intervals, func(i catalog.Interval) bool {
		until := len(h.Versions)
		if i.Until != "" {
			until = position(i.Until)
		}
		return position(i.Since) <= at && at < until
	})
}

// constraintOf returns the constraint that accepts the versions of the intervals. It accepts at least the selected
// version.
func constraintOf(intervals []catalog.Interval, selected string) string {
	var out []string
	for _, i := range intervals {
		text := ">=" + i.Since
		if i.Until != "" {
			text += ", <" + i.Until
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	text := strings.Join(out, " || ")
	if version.CheckConstraint(text, false) == nil && version.ParseConstraint(text).Accepts(selected) {
		return text
	}
	return selected
}
