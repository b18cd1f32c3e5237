package solver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/version"
)

// setAside passes the tags that a user might expect instead of the selected version, newest first,
// and then the tags that are not versions, with the reason for each.
func (a *report) setAside(n int, yield func(SetAside) bool) {
	v := a.variables[n]
	selected := v.state.only()
	for i := v.size - 1; i > selected; i-- {
		c := &v.candidates[i]
		if c.version.Tag != v.candidates[selected].version.Tag && !yield(SetAside{Tag: c.name(), Reason: a.whyNot(n, i)}) {
			return
		}
	}
	for i := range v.unusable {
		if u := &v.unusable[i]; !yield(SetAside{Tag: u.Tag, Reason: u.Unusable()}) {
			return
		}
	}
}

// whyNot returns the reason why a candidate is not part of the solution.
func (a *report) whyNot(n, i int) string {
	v := a.variables[n]
	if by := a.refused(n, i); by != "" {
		return by
	}
	if v.installed > 0 && !v.isRoot &&
		(a.problem.Moves == Never || a.problem.Moves == Upward && v.olderThanInstalled().has(i)) {
		return fmt.Sprintf("%s is installed and must not change to it", v.candidates[v.installed].name())
	}
	known := a.store.cachedDependencies(v.name, v.candidates[i].pin())
	switch {
	case known == nil && v.state.only() == v.installed:
		return "the installed version is still accepted"
	case known == nil && a.problem.Nearest:
		return "a version nearer to the installed one is accepted"
	case known == nil:
		return "it was not needed"
	case known.unavailable != nil:
		return unavailability(known.unavailable)
	}
	for _, d := range known.deps {
		to, ok := a.numbers[d.Package]
		if !ok {
			continue
		}
		other := a.variables[to]
		fit := other.fitting(d.Constraint, a.store.constraint(d.Constraint))
		switch at := other.state.only(); {
		case fit.empty() && !d.Optional:
			return fmt.Sprintf("it needs %s %s, which does not exist", d.Package, accepted(d.Constraint))
		case at > 0 && !fit.has(at) && d.Optional:
			return fmt.Sprintf("it "+worksOnlyWith+
				"%s, but %s is selected", a.requirementText(d.Package, d.Constraint), other.versionName(at))
		case at > 0 && !fit.has(at):
			return fmt.Sprintf("it needs %s %s, but %s is selected", d.Package, accepted(d.Constraint), other.versionName(at))
		}
	}
	return "its dependencies conflict with other packages"
}

// Explained is an error of [Source.Dependencies] with the reason why the version cannot be selected, such as "it is
// yanked".
type Explained interface {
	error
	WhyNot() string
}

func unavailability(err error) string {
	if explained, ok := errors.AsType[Explained](err); ok {
		return explained.WhyNot()
	}
	return "it is no longer available"
}

// refused returns a requirement that does not accept a candidate, or "".
func (a *report) refused(n, i int) string {
	v := a.variables[n]
	for _, by := range a.requirements[n] {
		if !by.fit.has(i) {
			return by.words + prereleaseNote(&v.candidates[i], by.text)
		}
	}
	return ""
}

// prereleaseNote returns a note for a constraint that accepts no prereleases, with the form that would accept the
// candidate.
func prereleaseNote(c *candidate, text string) string {
	if !c.version.Prerelease() || strings.Contains(text, "-") {
		return ""
	}
	if form := version.AcceptingPrereleases(text, c.version.Tag); form != "" {
		return ", which accepts no prereleases; " + form + " does"
	}
	return ", which accepts no prereleases"
}
