package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/packagediff"
)

// ErrNotFound is the error for a package, version or kind that does not exist, or that the client may not read.
var ErrNotFound = errors.New("not found")

// A Source provides the content of the pages. It must be safe for concurrent use.
type Source interface {
	// View returns the content that the client of a request may read. It is called once for each request.
	View(r *http.Request) View
}

// A View is the content that one client may read. Everything else is absent from its lists, counts and search results,
// and its errors are ErrNotFound. Callers do not change results.
type View interface {
	// Status returns the state of the index.
	Status(ctx context.Context) (Status, error)
	// Packages returns the packages, ordered by repository. Their times are those at which the newest versions were
	// published, as far as the source knows them; otherwise those that authors state.
	Packages(ctx context.Context) ([]catalog.Package, error)
	// Package returns a package with its history. The error is ErrNotFound if there is none.
	Package(ctx context.Context, repository string) (catalog.Package, catalog.History, error)
	// Published returns the times at which the versions of a package were published, by tag. The authors' times apply to
	// versions without one.
	Published(ctx context.Context, repository string) (map[string]time.Time, error)
	// Dependents returns the packages whose newest version depends on a repository, ordered by repository.
	Dependents(ctx context.Context, repository string) ([]Dependent, error)
	// Kinds returns the rows of kinds of the newest versions, in the order of a catalog. An empty group or kind selects
	// all. At most limit rows are returned.
	Kinds(ctx context.Context, group, kind string, limit int) ([]catalog.Kind, error)
	// GroupOwner returns the owner of an API group; the zero value if there is none.
	GroupOwner(ctx context.Context, group string) (Owner, error)
	// Search returns at most limit kinds and packages, best first.
	Search(ctx context.Context, query catalog.Query, limit int) ([]catalog.Hit, error)

	// Content returns the content of a version of a package. The error is ErrNotFound if there is none, and an
	// *errcode.Error if it cannot be read.
	Content(ctx context.Context, repository, tag string) (*Content, error)
	// Kind returns a kind of a version of a package, with its CRD and examples. The error is ErrNotFound if there is none.
	Kind(ctx context.Context, repository, tag, group, kind string) (docs.Kind, error)
	// Since returns for each field of a kind the first version of the package since which it has existed, by the path of
	// the field. It is empty if that is not known.
	Since(ctx context.Context, repository, tag, group, kind, version string) (map[string]string, error)
	// Diff returns the differences of two versions of a package.
	Diff(ctx context.Context, repository, from, to string) (packagediff.Diff, error)
}

// Status is the state of an index, as far as a client may know it.
type Status struct {
	// Name is the name of the index.
	Name string
	// Reference is the reference of the index for `xpkg index`; empty if it has none.
	Reference string
	// Sequence and times are those of the index; zero if they are unknown.
	Sequence         int64
	Created, Expires time.Time
	// Counts are the numbers of packages, versions and kinds that the client may read.
	Counts catalog.Counts
}

// A Dependent is a package that depends on another one.
type Dependent struct {
	Repository, Tag, Constraint string
	Optional                    bool
}

// An Owner is the owner of an API group.
type Owner struct {
	// Publisher is the name of the owner.
	Publisher string
	// Repository is the repository of the owner, or the prefix of its repositories, with the registry. If it is empty, the
	// packages whose publisher has the name are those of the owner.
	Repository string
	// Proof states how the ownership is known, such as "configuration of the registry".
	Proof string
}

// owns reports whether a package is that of the owner.
func (o Owner) owns(p catalog.Package) bool {
	if o.Repository == "" {
		return p.Publisher == o.Publisher
	}
	return catalog.GroupOwner{Owner: o.Repository}.Covers(p.Repository)
}

// Content is the content of one version of a package.
type Content struct {
	docs.Info
	// Kinds are the kinds of the version, in the order of a catalog. Older versions can lack everything but group, kind
	// and role.
	Kinds []catalog.Kind
	// Compositions are ordered by name.
	Compositions []docs.Composition
	// Readme and ReleaseNotes are Markdown; empty if there are none.
	Readme, ReleaseNotes string
	// Icon is the icon as the author wrote it, in any format; empty if there is none.
	Icon []byte
}
