package version

import (
	"strings"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// constraintNumbers matches a version in a constraint, with its prerelease if it has one.
var constraintNumbers = lazyregexp.New(`v?\d+(\.[\dxX*]+){0,2}(-[0-9A-Za-z.-]+)?`)

// AcceptingPrereleases returns the form of a constraint that also accepts a tag, which is a prerelease, such as
// >=v1.2.0-0 for >=v1.2.0. It returns "" if the constraint accepts the tag, or would not do so in this form.
func AcceptingPrereleases(constraint, tag string) string {
	v, c := Parse(tag), ParseConstraint(constraint)
	if !v.Usable() || !v.Prerelease() || c.Pin() != nil || c.Accepts(tag) {
		return ""
	}
	form := constraintNumbers().ReplaceAllStringFunc(constraint, func(number string) string {
		if strings.Contains(number, "-") {
			return number
		}
		return number + "-0"
	})
	if form == constraint || !ParseConstraint(form).Accepts(tag) {
		return ""
	}
	return form
}

// PrereleaseNote returns a note for a version that a constraint does not accept because it is a prerelease, which
// names the form of the constraint that accepts it, or "".
func PrereleaseNote(constraint, tag string) string {
	if form := AcceptingPrereleases(constraint, tag); form != "" {
		return " (it is a prerelease, which only a constraint such as " + form + " accepts)"
	}
	return ""
}
