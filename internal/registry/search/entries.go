package search

import (
	"context"
	"database/sql"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// Entries returns the recorded entries of packages. A package whose entry is missing or damaged has none.
func (d *Database) Entries(ctx context.Context, repositories []string) (map[string]*catalog.Entry, error) {
	out := map[string]*catalog.Entry{}
	for _, repository := range repositories {
		var packed []byte
		err := d.db.QueryRowContext(ctx, "SELECT entry FROM entries WHERE repository = ?", repository).Scan(&packed)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, ErrDatabase.New(err, "cannot read packages in the search database")
		}
		if e, err := catalog.DecodeEntry(packed); err == nil {
			out[repository] = e
		}
	}
	return out, nil
}

// RecordEntries records the entries of packages that differ from those of the former catalog, and removes those of packages that the catalog lacks.
func (d *Database) RecordEntries(ctx context.Context, c, former *catalog.Catalog) error {
	if err := d.recordEntries(ctx, c, former); err != nil {
		return ErrDatabase.New(err, "cannot write packages to the search database")
	}
	return nil
}

func (d *Database) recordEntries(ctx context.Context, c, former *catalog.Catalog) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // After a commit, it has no effect.
	var encoder catalog.EntryEncoder
	for e := range c.ChangedEntries(former) {
		packed, err := encoder.Encode(e)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO entries (repository, entry) VALUES (?, ?)", e.Repository(), packed); err != nil {
			return err
		}
	}
	// A former process can have recorded packages that are gone.
	if _, err := tx.ExecContext(ctx, "DELETE FROM entries WHERE repository NOT IN (SELECT repository FROM packages)"); err != nil {
		return err
	}
	return tx.Commit()
}
