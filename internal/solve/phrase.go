package solve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// fact says a fact in words.
func (s *search) fact(c *incompatibility) string {
	switch c.cause.kind {
	case asked:
		r := s.roots[c.cause.root]
		if r.Optional {
			return r.asker() + " " + suits + s.wish(r.Package, r.Constraint)
		}
		asks := "asks"
		if r.Name == "" {
			asks = "ask"
		}
		return fmt.Sprintf("%s %s for %s%s", r.asker(), asks, s.wish(r.Package, r.Constraint), s.lack(s.numbers[r.Package], c, 0, r.Constraint))
	case needed, suited:
		from, _ := c.find(c.cause.from)
		return s.versions(from) + " " + s.requires(c)
	case vanished:
		return cannot(s.versions(c.terms[0]), "be had")
	case held:
		v := s.variables[c.terms[0].pkg]
		may := "may not go down"
		if s.problem.Moves == Never {
			may = "may not change"
		}
		return fmt.Sprintf("%s %s is installed and %s", v.name, v.candidates[v.installed].name(), may)
	}
	return s.conclusion(c)
}

// requires says what versions of a package need, without the versions.
func (s *search) requires(c *incompatibility) string {
	to := s.variables[c.cause.to]
	if c.cause.kind == suited {
		return s.suitable(c)
	}
	need := "needs " + s.wish(to.name, c.cause.texts[0])
	if len(c.cause.texts) > 1 {
		need = "needs " + s.anyOf(c)
	}
	if c.cause.from == c.cause.to {
		return need + ", which is another version of itself"
	}
	return need + s.lack(c.cause.to, c, c.cause.from, c.cause.texts[0])
}

// suitable says with what versions of a package go, without the versions.
func (s *search) suitable(c *incompatibility) string {
	to := s.variables[c.cause.to]
	words := s.wish(to.name, c.cause.texts[0])
	switch {
	case c.cause.from == c.cause.to:
		words = "another version of itself"
	case len(c.cause.texts) > 1:
		words = to.name + " " + list(few(c.cause.texts), "or")
	}
	return suits + words
}

func (s *search) wish(pkg, constraint string) string {
	if constraint == "" {
		return pkg
	}
	if s.nameless(pkg, constraint) {
		constraint += " (which is not known to be a version)"
	}
	return pkg + " " + constraint
}

// nameless reports whether a digest is asked for where others ask for versions, and
// nobody knows of which version it is the content.
func (s *search) nameless(pkg, constraint string) bool {
	p := parsePin(constraint)
	n, met := s.numbers[pkg]
	return met && p.digest != "" && p.tag == "" && s.variables[n].listed && slices.ContainsFunc(s.variables[n].candidates, func(c candidate) bool {
		return c.digest == p.digest && c.tag == ""
	})
}

// anyOf is what versions need that each need something else.
func (s *search) anyOf(c *incompatibility) string {
	to := s.variables[c.cause.to]
	t, ok := c.find(c.cause.to)
	if !ok {
		return to.name + " " + list(few(c.cause.texts), "or")
	}
	return s.versions(term{t.pkg, to.all.without(t.set)})
}

// lack says so when nothing satisfies a requirement.
func (s *search) lack(to int, c *incompatibility, from int, text string) string {
	if _, ok := c.find(to); ok && to != from {
		return ""
	}
	v := s.variables[to]
	switch {
	case v.size == 1 && v.missing != nil:
		return ", whose repository does not exist"
	case v.size == 1 && len(v.unusable) > 0:
		return fmt.Sprintf(", of which there is no version (only %s)", list(few(words(v.unusable, func(u Version) string { return u.Tag })), "and"))
	case v.size == 1:
		return ", whose repository is empty or does not exist"
	}
	if pre := s.prereleases(v, text); !pre.empty() {
		return fmt.Sprintf(", of which there are prereleases only (%s)", s.ranges(term{to, pre}))
	}
	return fmt.Sprintf(", which does not exist (there is %s)", s.ranges(term{to, v.all}))
}

// prereleases are those that a constraint would accept if it accepted any.
func (s *search) prereleases(v *variable, text string) set {
	out := newSet(v.size)
	c, err := semver.NewConstraint(text)
	if err != nil {
		return out
	}
	c.IncludePrerelease = true
	for i := 1; i < v.size; i++ {
		if x := &v.candidates[i].version; x.Prerelease() && c.Check(x.semver()) {
			out.add(i)
		}
	}
	return out
}

// conclusion says what an incompatibility means.
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
	switch {
	case len(have)+len(must) == 0:
		return "there is no solution"
	case len(have) == 0:
		return list(must, "or") + " is needed"
	case len(must) == 0 && len(have) == 1:
		return cannot(have[0], "be used")
	case len(must) == 0:
		return list(have, "and") + " cannot be used together"
	case len(have) == 1:
		return cannot(have[0], "do without "+list(must, "or"))
	}
	return list(have, "and") + " together cannot do without " + list(must, "or")
}

// cannot says what versions of a package cannot.
func cannot(versions, what string) string {
	if of, all := strings.CutPrefix(versions, "any version"); all {
		return "no version" + of + " can " + what
	}
	return versions + " cannot " + what
}

// versions names a package with some of its versions.
func (s *search) versions(t term) string {
	v := s.variables[t.pkg]
	if t.set.count() == v.size-1 && v.size > 2 && !t.set.absent() {
		return "any version of " + v.name
	}
	return v.name + " " + s.ranges(t)
}

// ranges names versions as ranges of what there is, the lowest first.
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
	return list(few(runs), "or")
}

func (v *variable) span(from, to int) string {
	first, last := v.candidates[from].name(), v.candidates[to].name()
	switch to - from {
	case 0:
		return first
	case 1:
		return first + ", " + last
	}
	return strings.Join([]string{first, last}, " to ")
}
