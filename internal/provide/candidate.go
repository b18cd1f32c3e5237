package provide

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Role is the part that a kind has in a package.
type Role int

// Roles of kinds. Only a package that defines a kind is a candidate.
const (
	// Defines is the role of a kind whose CRD the package creates.
	Defines Role = iota
	// Input is the role of the input of a Function, which is never a resource of the API server.
	Input
	// Elsewhere is the role of a kind that the package uses, and another package defines.
	Elsewhere
	// Former is the role of a kind that another version of the package defines. The package is no candidate for it, but
	// its publisher counts among those of the group.
	Former
)

// A Candidate is a package that provides a kind, as a source knows it.
type Candidate struct {
	// Repository is the normalized name of the repository.
	Repository string
	// Version is the newest version that can be installed and serves the required API version. It is empty, with a reason
	// in Unusable, if there is none.
	Version string
	Digest  oci.Digest
	// Constraint accepts the versions that serve the required API version. An empty constraint accepts every version.
	Constraint string
	Unusable   string
	// Kind, Plural and Singular are the names of the kind, and Served its API versions in Version.
	Kind, Group, Plural, Singular string
	Served                        []string
	Role                          Role
	// Type is the kind of the package: Provider or Configuration.
	Type string
	// Removed reports that the newest version of the package does not define the kind.
	Removed bool
	// Publisher is the name of the publisher. It is a claim of the author unless Verified is true.
	Publisher string
	Verified  bool
	// OwnsGroup reports whether it is proven that the publisher owns the API group of the kind.
	OwnsGroup bool
	// Cost is the number of kinds that the installation adds.
	Cost       int
	Deprecated bool
	// ReplacedBy is the repository to which the package was renamed, and Aliases are other names that it claims to have.
	ReplacedBy string
	Aliases    []string
	// CRDs are the names of the CRDs that the version creates, as far as they are known.
	CRDs []string
	// Updated is the time of Version in seconds; 0 if it is unknown.
	Updated int64
	// Downloaded reports that the package is known only because its content was downloaded before, such as for an
	// inspection. Neither a user nor an index recommends it, so it is not selected without asking the user.
	Downloaded bool
	// Source is the name of the source for messages, and Priority its position in the configuration: 0 is asked first.
	Source   string
	Priority int
}

// CRD returns the name of the CRD of the kind.
func (c Candidate) CRD() string { return c.Plural + "." + c.Group }

// Ref returns the reference of the version that would be installed.
func (c Candidate) Ref() string {
	switch {
	case c.Version == "":
		return c.Repository
	case strings.HasPrefix(c.Version, "sha256:"):
		return c.Repository + "@" + c.Version
	}
	return c.Repository + ":" + c.Version
}

// KindRef returns the kind under its own name with an API version, which can be empty.
func (c Candidate) KindRef(version string) dependency.KindRef {
	return dependency.KindRef{Name: c.Kind, Group: c.Group, Version: version}
}

// publisher identifies the publisher for comparisons. Authors can claim any name, but they cannot push to the
// repositories of other organisations.
func (c Candidate) publisher() string {
	if c.Verified {
		return "verified " + c.Publisher
	}
	return c.organisation()
}

// organisation returns the host and the first part of the path of the repository.
func (c Candidate) organisation() string {
	host, path, _ := strings.Cut(c.Repository, "/")
	organisation, _, _ := strings.Cut(path, "/")
	return host + "/" + organisation
}

// PublisherText describes the publisher for messages.
func (c Candidate) PublisherText() string {
	if c.Verified {
		return c.Publisher + " (verified)"
	}
	return strings.TrimPrefix(c.publisher(), "verified ")
}

// compare orders candidates by preference. It depends on facts that an author cannot choose before facts that an author
// can choose.
func (c Candidate) compare(d Candidate) int {
	return cmp.Or(
		cmp.Compare(c.Priority, d.Priority),
		compareBool(c.Downloaded, d.Downloaded),
		-compareBool(c.OwnsGroup, d.OwnsGroup),
		-compareBool(c.Verified, d.Verified),
		compareBool(c.Version == "", d.Version == ""),
		compareBool(c.Removed, d.Removed),
		cmp.Compare(c.Cost, d.Cost),
		compareBool(c.Deprecated, d.Deprecated),
		-cmp.Compare(c.Updated, d.Updated),
		cmp.Compare(c.Repository, d.Repository),
		cmp.Compare(c.Source, d.Source),
		cmp.Compare(c.Version, d.Version),
		cmp.Compare(c.Digest.String(), d.Digest.String()),
		cmp.Compare(c.Kind, d.Kind),
		cmp.Compare(c.Role, d.Role),
		slices.Compare(c.Served, d.Served),
	)
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
