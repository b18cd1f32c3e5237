package dependency

import "github.com/xpkg-dev/xpkg/pkg/version"

// Dependency is a requirement that one version of a package has on another package.
type Dependency struct {
	// Package identifies the required package. In the metadata of a package it is the
	// reference that the author wrote, without tag and digest; everywhere else it is the
	// normalized name of the repository, which is compared as a string.
	Package string `json:"package"`
	// Constraint selects versions: a constraint in the language of Masterminds/semver,
	// a digest ("sha256:…"), or a tag with its digest ("v1.2.3@sha256:…"). Any other
	// text is the name of a tag. An empty constraint accepts every release and the
	// installed version.
	Constraint string `json:"constraint"`
	// Optional reports that the package does not have to be installed. If it is, its
	// version must satisfy the constraint.
	Optional bool `json:"optional,omitempty"`
	// APIVersion and Kind identify the object that installs the package, as far as the
	// author specified them. They are a hint: the metadata of the dependency is
	// authoritative (Package Format v2).
	APIVersion string `json:"-"`
	Kind       string `json:"-"`
	// CRD is the required kind, in the form of [KindRef], if the package was selected because it provides the kind.
	CRD string `json:"crd,omitempty"`
}

// On returns the same requirement on the package with a normalized name, without the hints
// of the author.
func (d Dependency) On(pkg string) Dependency {
	return Dependency{Package: pkg, Constraint: d.Constraint, Optional: d.Optional, CRD: d.CRD}
}

// Required returns the dependencies that are not optional.
func Required(all []Dependency) []Dependency { return where(all, false) }

// Optional returns the optional dependencies.
func Optional(all []Dependency) []Dependency { return where(all, true) }

func where(all []Dependency, optional bool) []Dependency {
	var out []Dependency
	for _, d := range all {
		if d.Optional == optional {
			out = append(out, d)
		}
	}
	return out
}

// Root is a requirement of a user, or of a folder that is not built yet.
type Root struct {
	// Package and Constraint are as in Dependency.
	Package    string `json:"package"`
	Constraint string `json:"constraint"`
	// Exact means that Constraint is the name of a tag, even if it is a valid constraint:
	// "v1" is then the tag v1, not every version 1.
	Exact bool `json:"exact,omitempty"`
	// Optional makes the root a restriction: the package does not have to be installed,
	// but if it is, its version must satisfy the constraint.
	Optional bool `json:"optional,omitempty"`
	// By names the requester in explanations. If it is empty, the requester is the user.
	By string `json:"by,omitempty"`
	// CRD is the requested kind, in the form of [KindRef]. In a request, Package and Constraint are then empty; in a
	// solution, they are the package that was selected because it provides the kind.
	CRD string `json:"crd,omitempty"`
}

// Accepts reports whether a pin, which is a tag, a digest, or both, satisfies the root.
func (r Root) Accepts(pin string) bool {
	if r.Exact {
		return version.ExactTag(r.Constraint).Accepts(pin)
	}
	return version.ParseConstraint(r.Constraint).Accepts(pin)
}

// Requester returns the name of the requester for messages: By, or "you" for the user.
func (r Root) Requester() string {
	if r.By == "" {
		return "you"
	}
	return r.By
}
