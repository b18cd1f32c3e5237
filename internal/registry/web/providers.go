package web

import (
	"cmp"
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

// maxRows is the maximum number of rows of kinds that a page of one kind considers.
const maxRows = 500

// firstProvider returns the row of the package that a reader most likely means by a kind.
func firstProvider(r *request, group, kind string) (catalog.Kind, error) {
	rows, err := r.view.Kinds(r.ctx, group, kind, maxRows)
	if err != nil {
		return catalog.Kind{}, err
	}
	rows, err = rankProviders(r, rows)
	if err != nil || len(rows) == 0 {
		return catalog.Kind{}, first(err, ErrNotFound)
	}
	return rows[0], nil
}

// rankProviders orders the rows of one kind: packages that install it, not deprecated, verified, with most dependents,
// with fewest kinds.
func rankProviders(r *request, rows []catalog.Kind) ([]catalog.Kind, error) {
	packages, err := packagesOf(r, results{Kinds: rows})
	if err != nil {
		return nil, err
	}
	number := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(rows), func(a, b catalog.Kind) int {
		p, q := packages[a.Repository], packages[b.Repository]
		return cmp.Or(
			cmp.Compare(number(!isInstalled(a.Role)), number(!isInstalled(b.Role))),
			cmp.Compare(number(p.Deprecated), number(q.Deprecated)),
			cmp.Compare(number(p.Verified == ""), number(q.Verified == "")),
			cmp.Compare(q.Rank, p.Rank), cmp.Compare(p.Kinds, q.Kinds), cmp.Compare(a.Repository, b.Repository))
	}), nil
}

func isInstalled(role catalog.Role) bool {
	return role == catalog.Provides || role == catalog.Composite || role == catalog.Claim
}

// A provider is another package with a kind.
type provider struct {
	catalog.Package
	Role catalog.Role
	URL  string
	// Schema compares its CRD with the CRD of the page: "equal", "superset" or "different".
	Schema string
	// Changes is the number of differences.
	Changes int
}

// maxProviders is the maximum number of other packages whose schemas are compared.
const maxProviders = 8

// otherProviders returns the other packages with a kind.
func otherProviders(r *request, at release, row catalog.Kind, d *definition) ([]provider, error) {
	rows, err := r.view.Kinds(r.ctx, row.Group, row.Kind, maxRows)
	if err != nil {
		return nil, err
	}
	var out []provider
	for _, other := range rows {
		if other.Repository == at.Repository() {
			continue
		}
		p, err := compareProvider(r, other, d, len(out) < maxProviders)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// compareProvider describes another package. A CRD that cannot be read is not compared.
func compareProvider(r *request, other catalog.Kind, d *definition, compare bool) (provider, error) {
	at, err := releaseOf(r.ctx, r.view, other.Repository, "")
	if err != nil {
		return provider{}, err
	}
	p := provider{
		Package: at.Package, Role: other.Role, URL: packageKindURL(other.Repository, at.Tag, other.Group, other.Kind),
	}
	if !compare {
		return p, nil
	}
	theirs, err := definitionOf(r, at, other)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return p, nil
		}
		return provider{}, err
	}
	p.Schema, p.Changes = compareSchemas(d, theirs)
	return p, nil
}

// compareSchemas returns the relation of their CRD to ours: equal; superset, if every object that is valid in ours is
// valid in theirs; different. Documentation, errors and the conversion between versions are ignored.
func compareSchemas(ours, theirs *definition) (string, int) {
	worst, n := crddiff.Safe, 0
	for _, c := range crddiff.CRD(&ours.crd, &theirs.crd) {
		if !changesSchema(c) {
			continue
		}
		worst, n = max(worst, c.Class), n+1
	}
	switch {
	case n == 0:
		return "equal", 0
	case worst == crddiff.Safe:
		return "superset", n
	default:
		return "different", n
	}
}

// changesSchema reports whether a change can affect the objects that are valid.
func changesSchema(c crddiff.Change) bool {
	switch c.Type {
	case crddiff.DocumentationChanged, crddiff.ColumnsChanged, crddiff.ConversionChanged, crddiff.VersionDeprecated,
		crddiff.VersionNotDeprecated:
		return false
	case crddiff.RuleChanged:
		return c.Subject != "message"
	default:
		return true
	}
}
