package catalog

import (
	"time"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Format is the version of the format of an index.
const Format = 1

// A Catalog is the content of an index. All lists are sorted, so equal catalogs have equal encodings.
type Catalog struct {
	Config Config
	// Packages are ordered by repository.
	Packages []Package
	// Kinds are the kinds of the newest version of each package, ordered by lower-case kind, kind, group, repository and
	// role.
	Kinds []Kind
	// Histories are ordered by repository. There is one for each package.
	Histories []History
	// Texts are ordered by repository. They are optional.
	Texts []Text
}

// Config is the configuration of an index. With the digests of the layers, it is all that a signature covers.
type Config struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
	// Sequence increases with every published state of the index.
	Sequence int64 `json:"sequence"`
	// Previous is the digest of the manifest with the previous sequence; zero for the first.
	Previous oci.Digest `json:"previous,omitzero"`
	// Created is the time of the newest change, and Expires the time after which a client refuses the index; zero for
	// never.
	Created time.Time `json:"created,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Base identifies the snapshot that the journal continues; see [Layers].
	Base    oci.Digest `json:"base,omitzero"`
	Sources []Source   `json:"sources"`
	// Shards is the number of history layers, a power of two.
	Shards int    `json:"shards"`
	Counts Counts `json:"counts"`
	// Owners are the owners of API groups, ordered by group; see [SortOwners].
	Owners []GroupOwner `json:"owners,omitempty"`
}

// Counts are the numbers of rows of a catalog.
type Counts struct {
	Packages int `json:"packages"`
	Versions int `json:"versions"`
	Kinds    int `json:"kinds"`
}

// SourceKind is the kind of a source.
type SourceKind string

// Kinds of sources.
const (
	// SourceRepositories is a list of repositories.
	SourceRepositories SourceKind = "repositories"
	// SourceRegistry is a registry, or a prefix in one, that lists its repositories.
	SourceRegistry SourceKind = "registry"
	// SourceIndex is another index.
	SourceIndex SourceKind = "index"
)

// A Source is a place from which an index is built.
type Source struct {
	Kind SourceKind `json:"kind"`
	// Location is the registry with an optional prefix, or the reference of the index; empty for a list of repositories.
	Location     string   `json:"location,omitempty"`
	Repositories []string `json:"repositories,omitempty"`
}

// A Package is the row of one package. Texts are those of its newest version.
type Package struct {
	// Repository is the normalized name of the repository; see [oci.RepositoryName].
	Repository string `json:"n"`
	// Type is Provider, Configuration or Function; empty for a package that could not be indexed.
	Type    string `json:"y,omitempty"`
	Title   string `json:"t,omitempty"`
	Summary string `json:"s,omitempty"`
	// Keywords are sorted.
	Keywords []string `json:"w,omitempty"`
	// Aliases are other names of the repository, sorted.
	Aliases   []string `json:"g,omitempty"`
	Category  string   `json:"c,omitempty"`
	License   string   `json:"i,omitempty"`
	Website   string   `json:"h,omitempty"`
	SourceURL string   `json:"z,omitempty"`
	// Publisher is the organisation or person that publishes the package, and Verified how that is known; empty if it is
	// only claimed.
	Publisher string `json:"o,omitempty"`
	Verified  string `json:"v,omitempty"`
	// Latest is the tag of the newest version: the highest release that is neither yanked nor retracted, otherwise the
	// highest such prerelease, otherwise the highest other tag.
	Latest string `json:"l,omitempty"`
	// Updated is the time of the newest version; zero if it is unknown.
	Updated time.Time `json:"u,omitzero"`
	// Kinds is the number of kinds of the newest version.
	Kinds int `json:"k,omitempty"`
	// Rank is the number of packages whose newest version depends on the package.
	Rank       int    `json:"r,omitempty"`
	Deprecated bool   `json:"d,omitempty"`
	ReplacedBy string `json:"b,omitempty"`
	// Error is the reason why the newest version could not be indexed; nil otherwise.
	Error *IndexError `json:"e,omitempty"`
}

// An IndexError is the reason why a package, or one of its versions, is not indexed.
type IndexError struct {
	// Code is the name of an error code.
	Code    string `json:"c"`
	Message string `json:"m"`
}

// A Role is the part that a kind has in a package.
type Role string

// Roles of kinds.
const (
	// Provides is a kind whose CRD or MRD is in a Provider.
	Provides Role = "p"
	// Composite is the kind of an XRD.
	Composite Role = "x"
	// Claim is the claim of an XRD.
	Claim Role = "c"
	// Input is the kind of the input of a Function. It is never a candidate for an installation.
	Input Role = "i"
	// Elsewhere is a kind that the package does not define itself.
	Elsewhere Role = "d"
)

// A Kind is a kind of the newest version of a package.
type Kind struct {
	Kind, Group, Plural, Singular string
	ShortNames                    []string
	// Scope is Namespaced, Cluster or empty.
	Scope string
	// Served are the served API versions, in the order of Kubernetes: v2, v1, v1beta1.
	Served     []string
	Role       Role
	Repository string
	// Since is the version of the package in which the kind appeared and that it has had ever since.
	Since string
}

// A History is the history of one package.
type History struct {
	Repository string
	// Versions are ordered by precedence, lowest first.
	Versions []Version
	// Kinds are ordered by group and kind.
	Kinds []KindHistory
}

// A Version is one version of a package.
type Version struct {
	Tag    string
	Digest oci.Digest
	// Created is the time that the image states; zero if there is none.
	Created time.Time
	// Crossplane is the constraint for the version of Crossplane.
	Crossplane   string
	Dependencies []dependency.Dependency
	// Status is nil for a version that can be used.
	Status *Status
	// Signatures name the signers of the version, sorted.
	Signatures []string
	// IndexLayer is the digest of the index layer; zero if there is none.
	IndexLayer oci.Digest
	// Kinds is the number of kinds that the version defines.
	Kinds int
	// Error is the reason why the version is not indexed; nil otherwise.
	Error *IndexError
}

// A KindHistory lists the versions of a package that serve a kind.
type KindHistory struct {
	Group, Kind string
	// Intervals are ordered by API version, and for each by package version.
	Intervals []Interval
}

// An Interval is a range of versions of a package that serve an API version.
type Interval struct {
	// Version is the API version.
	Version string
	// Since is the first version of the package in the interval. Until is the first version after it; empty while the API
	// version is served.
	Since, Until string
}

// A Text is additional text for searching a package.
type Text struct {
	Repository string
	// Readme is the beginning of the readme.
	Readme string
	// Kinds are ordered by group and kind.
	Kinds []KindText
}

// A KindText is additional text for searching a kind.
type KindText struct {
	Group, Kind string
	// Description is the first sentence of the description.
	Description string
	// Fields are the names of the fields, sorted.
	Fields []string
}
