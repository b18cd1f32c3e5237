package search

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// Published returns the times at which the server first saw the versions of a package, by tag. Callers do not change the result.
func (d *Database) Published(repository string) map[string]time.Time {
	d.publishedMutex.RLock()
	defer d.publishedMutex.RUnlock()
	return d.published[repository]
}

// RecordedPackages returns the packages of the catalog whose versions were recorded last, also by an earlier process.
func (d *Database) RecordedPackages(ctx context.Context) ([]string, error) {
	known, err := d.readPublished(ctx)
	if err != nil {
		return nil, ErrDatabase.New(err, "cannot read the times of versions in the search database")
	}
	names := slices.Sorted(maps.Keys(known))
	return slices.DeleteFunc(names, func(name string) bool { return name == recordHasBegun }), nil
}

// RecordPublished records the versions of a catalog that the database does not know, with the current time. A new database takes the times that authors
// state, unless they are in the future: the versions can be as old as that.
func (d *Database) RecordPublished(ctx context.Context, c *catalog.Catalog, now time.Time) error {
	known, err := d.readPublished(ctx)
	if err != nil {
		return ErrDatabase.New(err, "cannot read the times of versions in the search database")
	}
	_, hasBegun := known[recordHasBegun]
	changed := map[string]map[string]time.Time{}
	if !hasBegun {
		changed[recordHasBegun] = map[string]time.Time{}
	}
	current := map[string]map[string]time.Time{recordHasBegun: {}}
	for i := range c.Histories {
		h := &c.Histories[i]
		was := known[h.Repository]
		is := make(map[string]time.Time, len(h.Versions))
		for j := range h.Versions {
			v := &h.Versions[j]
			at, isKnown := was[v.Tag]
			switch {
			case isKnown:
			case hasBegun || v.Created.After(now):
				at = now
			default:
				at = v.Created
			}
			is[v.Tag] = at.UTC().Truncate(time.Second)
		}
		if current[h.Repository] = is; !maps.Equal(was, is) {
			changed[h.Repository] = is
		}
	}
	if err := d.writePublished(ctx, known, current, changed); err != nil {
		return ErrDatabase.New(err, "cannot write the times of versions to the search database")
	}
	d.publishedMutex.Lock()
	defer d.publishedMutex.Unlock()
	d.published = current
	return nil
}

// recordHasBegun is the key of the row that a database has when the times of its first catalog were recorded.
const recordHasBegun = ""

// readPublished returns the recorded times.
func (d *Database) readPublished(ctx context.Context) (map[string]map[string]time.Time, error) {
	d.publishedMutex.RLock()
	known := d.published
	d.publishedMutex.RUnlock()
	if known != nil {
		return known, nil
	}
	rows, err := d.db.QueryContext(ctx, "SELECT repository, times FROM published")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known = map[string]map[string]time.Time{}
	for rows.Next() {
		var repository, text string
		if err := rows.Scan(&repository, &text); err != nil {
			return nil, err
		}
		var times map[string]time.Time
		if err := json.Unmarshal([]byte(text), &times); err == nil { // A damaged row counts as missing.
			known[repository] = times
		}
	}
	return known, rows.Err()
}

// writePublished writes the rows that have changed, and removes those of packages that are gone.
func (d *Database) writePublished(ctx context.Context, known, current, changed map[string]map[string]time.Time) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // After a commit, it has no effect.
	for repository := range known {
		if _, exists := current[repository]; !exists {
			if _, err := tx.ExecContext(ctx, "DELETE FROM published WHERE repository = ?", repository); err != nil {
				return err
			}
		}
	}
	for repository, times := range changed {
		text, err := json.Marshal(times)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO published (repository, times) VALUES (?, ?)", repository, string(text)); err != nil {
			return err
		}
	}
	return tx.Commit()
}
