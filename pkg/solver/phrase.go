package solver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/pkg/version"
)

// describeFact returns the text of a fact of the proof as a clause.
func (s *search) describeFact(c *incompatibility) string {
	switch c.cause.kind {
	case rootRequirement:
		r := s.roots[c.cause.root]
		switch {
		case r.Optional:
			return r.Requester() + " " + worksOnlyWith + s.requirementText(r.Package, r.Constraint)
		case r.By == "":
			return "you request " + s.requirementText(r.Package, r.Constraint) +
				s.missingText(s.numbers[r.Package], c, 0, r.Constraint)
		}
		return r.By + " requests " + s.requirementText(r.Package, r.Constraint) +
			s.missingText(s.numbers[r.Package], c, 0, r.Constraint)
	case requiredDependency, optionalDependency:
		from, _ := c.find(c.cause.from)
		return s.versions(from) + " " + s.requires(c)
	case unavailableVersion:
		if text := s.versions(c.terms[0]); !strings.HasPrefix(text, anyVersion) {
			return text + " is not available" + s.whyUnavailable(c.terms[0])
		}
		return "no version of " + s.variables[c.terms[0].pkg].name + " is available" + s.whyUnavailable(c.terms[0])
	case installedPin:
		v := s.variables[c.terms[0].pkg]
		must := "must not be downgraded"
		if s.problem.Moves == Never {
			must = "must not change"
		}
		return fmt.Sprintf("%s %s is installed and %s", v.name, v.versionName(v.installed), must)
	case circular:
		var names []string
		for _, n := range c.cause.cycle {
			t, _ := c.find(n)
			names = append(names, s.versions(t))
		}
		if len(names) == 1 {
			return names[0] + " requires itself"
		}
		return joinList(fewItems(names), "and") + " require each other in a cycle"
	}
	return s.conclusion(c)
}

// whyUnavailable returns the reason in parentheses why versions are not available, or "" if it is unknown. Of several
// versions, it is the reason of the highest one.
func (s *search) whyUnavailable(t term) string {
	v := s.variables[t.pkg]
	for i := v.size - 1; i > 0; i-- {
		if !t.set.has(i) {
			continue
		}
		n := s.store.cachedDependencies(v.name, v.candidates[i].pin())
		if n == nil {
			return ""
		}
		explained, ok := errors.AsType[Explained](n.unavailable)
		switch {
		case !ok:
			return ""
		case t.set.count() > 1:
			return fmt.Sprintf(" (%s: %s)", v.versionName(i), explained.WhyNot())
		}
		return " (" + explained.WhyNot() + ")"
	}
	return ""
}

// requires returns the requirement of a dependency without its subject.
func (s *search) requires(c *incompatibility) string {
	to := s.variables[c.cause.to]
	if c.cause.kind == optionalDependency {
		return s.optionalText(c)
	}
	text := "requires " + s.requirementText(to.name, c.cause.texts[0])
	if len(c.cause.texts) > 1 {
		text = "requires " + s.anyOf(c)
	}
	if c.cause.from == c.cause.to {
		return text + ", which is another version of itself"
	}
	return text + s.missingText(c.cause.to, c, c.cause.from, c.cause.texts[0])
}

// worksOnlyWith introduces an optional dependency.
const worksOnlyWith = "works only with "

// optionalText returns an optional dependency without its subject.
func (s *search) optionalText(c *incompatibility) string {
	to := s.variables[c.cause.to]
	switch {
	case c.cause.from == c.cause.to:
		return worksOnlyWith + "another version of itself"
	case len(c.cause.texts) > 1:
		return worksOnlyWith + to.name + " " + joinList(fewItems(textsOf(c.cause.texts, shorten)), "or")
	}
	return worksOnlyWith + s.requirementText(to.name, c.cause.texts[0])
}

// requirementText returns a package with a constraint.
func (s *search) requirementText(pkg, constraint string) string {
	if constraint == "" {
		return pkg
	}
	note := ""
	if s.unknownDigest(pkg, constraint) {
		note = " (a digest of unknown version)"
	}
	return pkg + " " + shorten(constraint) + note
}

// unknownDigest reports whether a constraint is a digest, other constraints on the package
// select versions, and the version of the digest is unknown.
func (s *search) unknownDigest(pkg, constraint string) bool {
	p := version.ParsePin(constraint)
	n, met := s.numbers[pkg]
	return met && p.Digest != "" && p.Tag == "" && s.variables[n].listed &&
		slices.ContainsFunc(s.variables[n].candidates, func(c candidate) bool {
			return c.digest == p.Digest && c.version.Tag == ""
		})
}

// anyOf returns the text for different versions that several versions of a package require.
func (s *search) anyOf(c *incompatibility) string {
	to := s.variables[c.cause.to]
	t, ok := c.find(c.cause.to)
	if !ok {
		return to.name + " " + joinList(fewItems(textsOf(c.cause.texts, shorten)), "or")
	}
	return s.versions(term{t.pkg, to.all.without(t.set)})
}

// missingText describes why no version satisfies a requirement, or returns "" if one does.
func (s *search) missingText(to int, c *incompatibility, from int, text string) string {
	if _, ok := c.find(to); ok && to != from {
		return ""
	}
	v := s.variables[to]
	switch {
	case v.size == 1 && v.virtual != nil:
		return ", which no known package provides"
	case v.size == 1 && v.missing != nil:
		return ", whose repository does not exist"
	case v.size == 1 && len(v.unusable) > 0:
		tags := joinList(fewItems(textsOf(v.unusable, func(u version.Version) string { return shorten(u.Tag) })), "and")
		return ", which has no versions, only the tags " + tags
	case v.size == 1:
		return ", whose repository is empty or does not exist"
	}
	if pre := s.prereleases(v, text); !pre.empty() {
		return fmt.Sprintf(", which has only prereleases (%s)", s.ranges(term{to, pre}))
	}
	return fmt.Sprintf(", which does not exist (versions: %s)", s.ranges(term{to, v.all}))
}

// prereleases returns the prereleases that a constraint would accept if it allowed
// prereleases.
func (s *search) prereleases(v *variable, text string) set {
	out := newSet(v.size)
	c, err := semver.NewConstraint(text)
	if err != nil {
		return out
	}
	c.IncludePrerelease = true
	for i := 1; i < v.size; i++ {
		if x := &v.candidates[i].version; x.Prerelease() && c.Check(x.Semver()) {
			out.add(i)
		}
	}
	return out
}

// conclusion returns the meaning of an incompatibility as a clause.
func (s *search) conclusion(c *incompatibility) string {
	var have, must []string
	for _, t := range c.terms {
		switch v := s.variables[t.pkg]; {
		case t.pkg == 0:
		case t.set.absent():
			must = append(must, s.versions(term{t.pkg, v.all.without(t.set)}))
		default:
			have = append(have, s.versions(t))
		}
	}
	have, must = fewItems(have), fewItems(must)
	switch {
	case len(have)+len(must) == 0:
		return "there is no solution"
	case len(have) == 0:
		return joinList(must, "or") + " is required"
	case len(must) == 0 && len(have) == 1:
		return cannot(have[0], "be used")
	case len(must) == 0:
		return joinList(have, "and") + " cannot be used together"
	case len(have) == 1:
		return cannot(have[0], "be used without "+joinList(must, "or"))
	}
	return joinList(have, "and") + " cannot be used together without " + joinList(must, "or")
}

// cannot returns a negative clause about versions of a package.
func cannot(versions, what string) string {
	if of, all := strings.CutPrefix(versions, anyVersion); all {
		return "no version" + of + " can " + what
	}
	return versions + " cannot " + what
}

// anyVersion introduces a package in a clause about all its versions.
const anyVersion = "any version"

// versions returns a package with some of its versions.
func (s *search) versions(t term) string {
	v := s.variables[t.pkg]
	if t.set.count() == v.size-1 && v.size > 2 && !t.set.absent() {
		return anyVersion + " of " + v.name
	}
	return v.name + " " + s.ranges(t)
}

// ranges returns versions as ranges of existing versions, lowest first.
func (s *search) ranges(t term) string {
	v := s.variables[t.pkg]
	var runs []string
	for i := 1; i < v.size; i++ {
		if !t.set.has(i) {
			continue
		}
		from := i
		for i+1 < v.size && t.set.has(i+1) {
			i++
		}
		runs = append(runs, v.span(from, i))
	}
	return joinList(fewItems(runs), "or")
}

func (v *variable) span(from, to int) string {
	first, last := v.versionName(from), v.versionName(to)
	switch to - from {
	case 0:
		return first
	case 1:
		return first + ", " + last
	}
	return strings.Join([]string{first, last}, " to ")
}
