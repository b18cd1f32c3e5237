package search

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// Sync changes the documents of the database to those of a catalog. It writes only the packages that have changed. Queries that run
// at the same time see the state before or after it.
func (d *Database) Sync(ctx context.Context, c *catalog.Catalog) error {
	known, err := d.repositories(ctx)
	if err != nil {
		return ErrDatabase.New(err, "cannot read the search database")
	}
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return ErrDatabase.New(err, "cannot change the search database")
	}
	w := &writer{ctx: ctx, tx: tx}
	if err := w.sync(c, known); err != nil {
		return ErrDatabase.New(errors.Join(err, tx.Rollback()), "cannot change the search database")
	}
	if err := tx.Commit(); err != nil {
		return ErrDatabase.New(err, "cannot change the search database")
	}
	d.words.Store(nil)
	if w.written > mostUnmerged {
		d.optimize(ctx)
	}
	return nil
}

// mostUnmerged is the number of written documents after which the full-text index is merged, for faster queries.
const mostUnmerged = 50000

// optimize merges the full-text index. Without it, queries are slower and have the same results, so errors are ignored.
func (d *Database) optimize(ctx context.Context) {
	for _, table := range []string{"package_docs", "kind_docs"} {
		_, _ = d.db.ExecContext(ctx, "INSERT INTO "+table+"("+table+") VALUES ('optimize')")
	}
	_, _ = d.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
}

type storedPackage struct {
	id   int64
	hash string
}

// repositories returns the packages in the database.
func (d *Database) repositories(ctx context.Context) (map[string]storedPackage, error) {
	rows, err := d.db.QueryContext(ctx, "SELECT repository, id, hash FROM packages")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := map[string]storedPackage{}
	for rows.Next() {
		var repository string
		var p storedPackage
		if err := rows.Scan(&repository, &p.id, &p.hash); err != nil {
			return nil, err
		}
		known[repository] = p
	}
	return known, rows.Err()
}

// writer writes one transaction.
type writer struct {
	ctx     context.Context
	tx      *sql.Tx
	written int

	insertPackage, insertKind, insertPackageDoc, insertKindDoc, insertWord *sql.Stmt
}

func (w *writer) prepare() error {
	var err error
	prepare := func(into **sql.Stmt, query string) {
		if err == nil {
			*into, err = w.tx.PrepareContext(w.ctx, query)
		}
	}
	prepare(&w.insertPackage, "INSERT INTO packages (id, repository, hash) VALUES (?, ?, ?)")
	prepare(&w.insertKind, "INSERT INTO kinds (id, package, kind, grp, role) VALUES (?, ?, ?, ?, ?)")
	prepare(&w.insertPackageDoc, "INSERT INTO package_docs (rowid, tokens) VALUES (?, ?)")
	prepare(&w.insertKindDoc, "INSERT INTO kind_docs (rowid, tokens) VALUES (?, ?)")
	prepare(&w.insertWord, "INSERT INTO words (word, uses) VALUES (?, 1) ON CONFLICT (word) DO UPDATE SET uses = uses + 1")
	return err
}

func (w *writer) sync(c *catalog.Catalog, known map[string]storedPackage) error {
	if err := w.prepare(); err != nil {
		return err
	}
	texts := map[string]*catalog.Text{}
	for i := range c.Texts {
		texts[c.Texts[i].Repository] = &c.Texts[i]
	}
	kinds := map[string][]*catalog.Kind{}
	for i := range c.Kinds {
		kinds[c.Kinds[i].Repository] = append(kinds[c.Kinds[i].Repository], &c.Kinds[i])
	}
	for i := range c.Packages {
		p := &c.Packages[i]
		hash, err := hashOf(p, kinds[p.Repository], texts[p.Repository])
		if err != nil {
			return err
		}
		old, stored := known[p.Repository]
		delete(known, p.Repository)
		if stored && old.hash == hash {
			continue
		}
		if stored {
			if err := w.remove(old.id); err != nil {
				return err
			}
		}
		if err := w.add(p, hash, kinds[p.Repository], texts[p.Repository]); err != nil {
			return err
		}
	}
	for _, gone := range known {
		if err := w.remove(gone.id); err != nil {
			return err
		}
	}
	return nil
}

// hashOf returns a hash of everything that the documents of a package contain.
func hashOf(p *catalog.Package, kinds []*catalog.Kind, text *catalog.Text) (string, error) {
	h := sha256.New()
	encoder := json.NewEncoder(h)
	for _, part := range []any{p, kinds, text} {
		if err := encoder.Encode(part); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func (w *writer) remove(id int64) error {
	for _, query := range []string{
		"DELETE FROM kind_docs WHERE rowid IN (SELECT id FROM kinds WHERE package = ?)",
		"DELETE FROM kinds WHERE package = ?",
		"DELETE FROM package_docs WHERE rowid = ?",
		"DELETE FROM packages WHERE id = ?",
	} {
		if _, err := w.tx.ExecContext(w.ctx, query, id); err != nil {
			return err
		}
	}
	return nil
}

// rankBits are the low bits of a row number, which number the documents of one rank.
const rankBits = 40

// rowOf returns the first row number for a package: packages with a higher rank have lower numbers.
func rowOf(p *catalog.Package) int64 {
	const most = 1 << 20
	rank := min(max(p.Rank, 0), most/4)
	if p.Verified != "" {
		rank += most / 4
	}
	if !p.Deprecated {
		rank += most / 2
	}
	return int64(most-rank) << rankBits
}

// next returns the next free row number of a table at a rank.
func (w *writer) next(table string, first int64) (int64, error) {
	var last sql.NullInt64
	err := w.tx.QueryRowContext(w.ctx, "SELECT max(id) FROM "+table+" WHERE id >= ? AND id < ?", first, first+1<<rankBits).Scan(&last)
	if err != nil || !last.Valid {
		return first, err
	}
	return last.Int64 + 1, nil
}

func (w *writer) add(p *catalog.Package, hash string, kinds []*catalog.Kind, text *catalog.Text) error {
	id, err := w.next("packages", rowOf(p))
	if err != nil {
		return err
	}
	if _, err := w.insertPackage.ExecContext(w.ctx, id, p.Repository, hash); err != nil {
		return err
	}
	if _, err := w.insertPackageDoc.ExecContext(w.ctx, id, packageTokens(p, text).String()); err != nil {
		return err
	}
	names := newTokens()
	names.addRepository(p.Repository)
	row, err := w.next("kinds", rowOf(p))
	if err != nil {
		return err
	}
	brief := briefTokens(p).String()
	for _, k := range kinds {
		if err := w.addKind(row, id, k, brief, text); err != nil {
			return err
		}
		names.add("", k.Kind)
		names.add("", k.Plural)
		names.addName(k.Kind)
		row++
	}
	w.written += 1 + len(kinds)
	return w.addWords(names.tokens)
}

func (w *writer) addKind(row, owner int64, k *catalog.Kind, brief string, text *catalog.Text) error {
	if _, err := w.insertKind.ExecContext(w.ctx, row, owner, k.Kind, k.Group, string(k.Role)); err != nil {
		return err
	}
	if _, err := w.insertKindDoc.ExecContext(w.ctx, row, kindTokens(k, brief, kindText(text, k))); err != nil {
		return err
	}
	return nil
}

// addWords adds the words of the names of a package to the words that a similar word can replace.
func (w *writer) addWords(words []string) error {
	for _, word := range words {
		if _, err := w.insertWord.ExecContext(w.ctx, word); err != nil {
			return err
		}
	}
	return nil
}

func kindText(text *catalog.Text, k *catalog.Kind) *catalog.KindText {
	if text == nil {
		return nil
	}
	for i := range text.Kinds {
		if t := &text.Kinds[i]; t.Kind == k.Kind && t.Group == k.Group {
			return t
		}
	}
	return nil
}
