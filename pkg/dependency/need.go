package dependency

import (
	"fmt"
	"slices"
	"strings"
)

// Need is all requirements of a package on another one: by its name, and for kinds that it provides.
type Need struct {
	Package string
	// Constraint contains the constraints of all requirements.
	Constraint string
	Optional   bool
	// Kinds are the required kinds for which the package was selected.
	Kinds []string
}

// Needs returns dependencies as one Need for each package, in the order of their first dependencies. An optional
// dependency is separate.
func Needs(all []Dependency) []Need {
	var out []Need
	for _, d := range all {
		at := slices.IndexFunc(out, func(n Need) bool { return n.Package == d.Package && n.Optional == d.Optional })
		if at < 0 {
			at = len(out)
			out = append(out, Need{Package: d.Package, Optional: d.Optional})
		}
		n := &out[at]
		if known := strings.Split(n.Constraint, " and "); d.Constraint != "" && !slices.Contains(known, d.Constraint) {
			n.Constraint = strings.TrimPrefix(n.Constraint+" and "+d.Constraint, " and ")
		}
		if d.CRD != "" && !slices.Contains(n.Kinds, d.CRD) {
			n.Kinds = append(n.Kinds, d.CRD)
		}
	}
	return out
}

// String describes the need: the package, the constraint and the kinds.
func (n Need) String() string {
	return strings.TrimSpace(strings.TrimSpace(n.Package+" "+n.Constraint) + " " + n.Purpose())
}

// Purpose returns the kinds in the form "for A and B", or "" if the package is required by its name only.
func (n Need) Purpose() string {
	switch {
	case len(n.Kinds) == 0:
		return ""
	case len(n.Kinds) > maxKindsInText:
		return fmt.Sprintf(
			"for %s and %d more kinds", strings.Join(n.Kinds[:maxKindsInText-1], ", "), len(n.Kinds)-maxKindsInText+1,
		)
	}
	return "for " + strings.Join(n.Kinds, " and ")
}

// maxKindsInText limits the kinds in a line of text.
const maxKindsInText = 5
