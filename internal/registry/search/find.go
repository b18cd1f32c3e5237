package search

import (
	"cmp"
	"context"
	"database/sql"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

const (
	// mostCandidates is the number of candidates of each type that are ranked.
	mostCandidates = 1000
	// mostExact is the number of candidates with an exact name that are ranked in any case.
	mostExact = 300
	// enoughExact is the number of candidates with complete words from which beginnings of words are not looked up.
	enoughExact = 200
	// mostAlternatives is the number of words of names that replace a word. The words of packages that the client may not know count,
	// too, so it is larger than the number of words of which the client could notice one.
	mostAlternatives = 2000
)

// mostPackages is the number of packages whose texts have a word and whose kinds are candidates.
const mostPackages = 200

// Visible reports whether the client of a query may know a package.
type Visible func(repository string) bool

// Search returns the hits of a query in a catalog, best first, at most limit. The database finds the candidates, and
// [catalog.Catalog.Search] ranks them.
func (d *Database) Search(ctx context.Context, c *catalog.Catalog, q catalog.Query, limit int, visible Visible) ([]catalog.Hit, error) {
	f := &finder{ctx: ctx, database: d, db: d.db, catalog: c, visible: visible, packages: map[string]bool{}, kinds: map[kindKey]bool{}}
	if err := f.find(q); err != nil {
		return nil, ErrDatabase.New(err, "cannot search")
	}
	candidates := f.candidates()
	return candidates.Search(q, limit), nil
}

type kindKey struct{ repository, kind, group, role string }

// finder collects candidates.
type finder struct {
	ctx      context.Context
	database *Database
	db       *sql.DB
	catalog  *catalog.Catalog
	visible  Visible
	packages map[string]bool
	kinds    map[kindKey]bool
	// whole selects everything that is visible.
	whole bool
}

func (f *finder) find(q catalog.Query) error {
	if err := f.findExact(q); err != nil {
		return err
	}
	// The database reads all rows of every word with a beginning before it returns the first one. If complete words have many
	// rows, those of their beginnings would not come first.
	if len(q.Words) > 0 && len(f.kinds) >= enoughExact {
		return f.collectPackagesOf(q, expression(q, q.Words))
	}
	if err := f.collect(q, expression(q, q.Words)); err != nil {
		return err
	}
	if f.whole || len(q.Words) == 0 || len(f.kinds) >= enoughExact {
		return nil
	}
	if len(f.kinds) == 0 && len(q.Words) > 1 {
		if err := f.collectKindsOfPackages(q); err != nil {
			return err
		}
	}
	if err := f.collectAlternatives(q, strings.Contains); err != nil {
		return err
	}
	if len(f.packages) > 0 || len(f.kinds) > 0 {
		return nil
	}
	return f.collectAlternatives(q, isSimilar)
}

// findExact collects the kinds that have a word of the query as their name, and the kinds that have all words as complete words.
func (f *finder) findExact(q catalog.Query) error {
	if len(q.Words) == 0 {
		return nil
	}
	words := exactExpression(q, q.Words)
	for _, w := range q.Words {
		if err := f.collectKinds(exactTerm(exactToken, w)+" AND "+words, mostExact); err != nil {
			return err
		}
	}
	return f.collectKinds(words, mostCandidates)
}

// collectPackagesOf collects packages, unless the query selects kinds.
func (f *finder) collectPackagesOf(q catalog.Query, expression string) error {
	if q.Kind != "" || q.Group != "" || q.Field != "" || q.Provides != "" {
		return nil
	}
	return f.collectPackages(expression)
}

func (f *finder) collect(q catalog.Query, expression string) error {
	if expression == "" {
		f.whole = true // The ranking applies the filters.
		return nil
	}
	if err := f.collectPackagesOf(q, expression); err != nil {
		return err
	}
	return f.collectKinds(expression, mostCandidates)
}

func (f *finder) addPackage(repository string) {
	if f.visible(repository) {
		f.packages[repository] = true
	}
}

// collectKindsOfPackages collects kinds of packages whose texts have some of the words: the documents of kinds do not have the summary and the readme of
// their package.
func (f *finder) collectKindsOfPackages(q catalog.Query) error {
	found := false
	var failed error
	expression := expressionWith(q, q.Words, func(prefix, token string) string {
		terms := []string{prefixTerm(prefix, token)}
		repositories, err := f.packagesWith(prefixTerm(prefix, token))
		failed = cmp.Or(failed, err)
		for _, repository := range repositories {
			terms = append(terms, exactTerm("", repository))
		}
		found = found || len(repositories) > 0
		return "(" + strings.Join(terms, " OR ") + ")"
	})
	if failed != nil || !found {
		return failed
	}
	return f.collectKinds(expression, mostCandidates)
}

// packagesWith returns the packages of an expression that are visible to the client, at most mostPackages.
func (f *finder) packagesWith(expression string) ([]string, error) {
	var found []string
	err := f.eachPackage(expression, func(repository string) bool {
		if f.visible(repository) {
			found = append(found, repository)
		}
		return len(found) < mostPackages
	})
	return found, err
}

func (f *finder) collectPackages(expression string) error {
	return f.eachPackage(expression, func(repository string) bool {
		f.addPackage(repository)
		return len(f.packages) < mostCandidates
	})
}

// eachPackage calls visit for the packages of an expression in the order of their rank, until visit returns false.
func (f *finder) eachPackage(expression string, visit func(repository string) bool) error {
	rows, err := f.db.QueryContext(f.ctx, `SELECT p.repository FROM package_docs d JOIN packages p ON p.id = d.rowid
		WHERE package_docs MATCH ? ORDER BY d.rowid`, expression)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more && rows.Next(); {
		var repository string
		if err := rows.Scan(&repository); err != nil {
			return err
		}
		more = visit(repository)
	}
	return rows.Err()
}

// collectKinds collects the kinds of an expression in the order of their rank until most of them are visible to the client, so
// that the candidates do not depend on packages that the client may not know.
func (f *finder) collectKinds(expression string, most int) error {
	rows, err := f.db.QueryContext(f.ctx, `SELECT p.repository, k.kind, k.grp, k.role FROM kind_docs d CROSS JOIN kinds k ON k.id = d.rowid
		CROSS JOIN packages p ON p.id = k.package WHERE kind_docs MATCH ? ORDER BY d.rowid`, expression)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := 0
	for found < most && rows.Next() {
		var key kindKey
		if err := rows.Scan(&key.repository, &key.kind, &key.group, &key.role); err != nil {
			return err
		}
		if f.visible(key.repository) {
			f.kinds[key], f.packages[key.repository] = true, true
			found++
		}
	}
	return rows.Err()
}

// candidates returns the part of the catalog with the candidates.
func (f *finder) candidates() *catalog.Catalog {
	part := &catalog.Catalog{Config: f.catalog.Config}
	for i := range f.catalog.Packages {
		if repository := f.catalog.Packages[i].Repository; f.packages[repository] || f.whole && f.visible(repository) {
			f.packages[repository] = true
			part.Packages = append(part.Packages, f.catalog.Packages[i])
		}
	}
	if f.whole {
		for i := range f.catalog.Kinds {
			if f.packages[f.catalog.Kinds[i].Repository] {
				part.Kinds = append(part.Kinds, f.catalog.Kinds[i])
			}
		}
	}
	for key := range f.kinds {
		if k := f.catalog.FindKind(key.kind, key.group, key.repository, catalog.Role(key.role)); k != nil {
			part.Kinds = append(part.Kinds, *k)
		}
	}
	for i := range f.catalog.Texts {
		if f.packages[f.catalog.Texts[i].Repository] {
			part.Texts = append(part.Texts, f.catalog.Texts[i])
		}
	}
	return part
}

// collectAlternatives collects the documents that match a query if words of names replace the words of the query with which they match.
func (f *finder) collectAlternatives(q catalog.Query, matches func(name, word string) bool) error {
	vocabulary, err := f.database.vocabulary(f.ctx)
	if err != nil {
		return err
	}
	found := false
	alternatives := expressionWith(q, q.Words, func(prefix, token string) string {
		terms := []string{prefixTerm(prefix, token)}
		for _, name := range vocabulary {
			if prefix == "" && len(terms) <= mostAlternatives && matches(name, token) && !strings.HasPrefix(name, token) {
				terms = append(terms, exactTerm("", name))
			}
		}
		found = found || len(terms) > 1
		return "(" + strings.Join(terms, " OR ") + ")"
	})
	if !found {
		return nil
	}
	return f.collect(q, alternatives)
}

// vocabulary returns the words of names, the most frequent first. It reads them once after each change.
func (d *Database) vocabulary(ctx context.Context) ([]string, error) {
	if known := d.words.Load(); known != nil {
		return *known, nil
	}
	rows, err := d.db.QueryContext(ctx, "SELECT word FROM words ORDER BY uses DESC, word")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	words := []string{}
	for rows.Next() {
		var word string
		if err := rows.Scan(&word); err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	d.words.Store(&words)
	return words, nil
}

// isSimilar reports whether two words differ by at most two typing errors, and short words by one.
func isSimilar(a, b string) bool {
	const long = 8
	most := 1
	if min(len(a), len(b)) >= long {
		most = 2
	}
	return len(a)-len(b) <= most && len(b)-len(a) <= most && spelling.Distance(a, b) <= most
}
