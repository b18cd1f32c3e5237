package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite" // The driver "sqlite", with full-text search.
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrDatabase is the code for a search database that cannot be used.
var ErrDatabase = errcode.Code{
	Name: "SearchDatabase", Class: errcode.Unavailable,
	Cause: "The database of the search cannot be written or read.",
	Fix:   "Check the free space and the permissions of the folder of the server; the database can be deleted.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrDatabase} }

// formatVersion identifies the schema and the tokens. A database of another version is built again.
const formatVersion = 3

// mostConnections limits the queries that run at the same time; each has its own cache of pages.
const mostConnections = 4

// schema: docs are the documents without their text. Their row numbers are those of the full-text tables. The beginnings of words of up to six
// characters, which can have many words, have an index of their own: without it, a query merges the rows of all these words.
const schema = `
CREATE TABLE packages (id INTEGER PRIMARY KEY, repository TEXT NOT NULL UNIQUE, hash TEXT NOT NULL);
CREATE TABLE kinds (id INTEGER PRIMARY KEY, package INTEGER NOT NULL, kind TEXT NOT NULL, grp TEXT NOT NULL, role TEXT NOT NULL);
CREATE INDEX kinds_package ON kinds (package);
CREATE VIRTUAL TABLE package_docs USING fts5(tokens, content='', contentless_delete=1, detail=none, prefix='2 3', tokenize="ascii tokenchars '=@~%.-/_:+'");
CREATE VIRTUAL TABLE kind_docs USING fts5(tokens, content='', contentless_delete=1, detail=none, prefix='2 3 4 5 6', tokenize="ascii tokenchars '=@~%.-/_:+'");
CREATE TABLE words (word TEXT PRIMARY KEY, uses INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE published (repository TEXT PRIMARY KEY, times TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (repository TEXT PRIMARY KEY, entry BLOB NOT NULL);
`

// Database is a search database. It is safe for concurrent use.
type Database struct {
	db *sql.DB
	// words are the words of names, the most frequent first; nil until they are read after a change.
	words atomic.Pointer[[]string]
	// published are the times of versions by repository and tag; nil until they are read.
	publishedMutex sync.RWMutex
	published      map[string]map[string]time.Time
}

// errReplace is the cause for which a database is built again. Other causes, such as a lack of descriptors, say nothing about the file.
var errReplace = errors.New("it is damaged or of another version")

// Open opens the database in a file, and creates it if it is missing, damaged or of another version.
func Open(ctx context.Context, path string) (*Database, error) {
	d, err := open(ctx, path)
	if err == nil || !isReplaceable(err) {
		return d, err
	}
	if err := Remove(path); err != nil {
		return nil, ErrDatabase.New(err, "cannot replace %s", path)
	}
	return open(ctx, path)
}

// isReplaceable reports whether an error means that a file has no valid database.
func isReplaceable(err error) bool {
	if failed := (*sqlite.Error)(nil); errors.As(err, &failed) {
		const primary = 0xff // The other bits are details.
		code := failed.Code() & primary
		return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB || code == sqlite3.SQLITE_ERROR
	}
	return errors.Is(err, errReplace)
}

// Remove deletes the files of a database that is closed.
func Remove(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func open(ctx context.Context, path string) (*Database, error) {
	query := url.Values{"_pragma": {
		"journal_mode(WAL)", "synchronous(OFF)", "busy_timeout(10000)", "cache_size(-4000)", "temp_store(MEMORY)", "trusted_schema(OFF)",
	}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, ErrDatabase.New(err, "cannot open %s", path)
	}
	db.SetMaxOpenConns(mostConnections)
	d := &Database{db: db}
	if err := d.prepare(ctx); err != nil {
		return nil, ErrDatabase.New(errors.Join(err, db.Close()), "cannot use %s", path)
	}
	return d, nil
}

// prepare creates the schema of an empty database, and checks the one of another.
func (d *Database) prepare(ctx context.Context) error {
	var version int
	if err := d.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch version {
	case formatVersion:
		return d.check(ctx)
	case 0:
		if _, err := d.db.ExecContext(ctx, schema); err != nil {
			return err
		}
		_, err := d.db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", formatVersion))
		return err
	}
	return fmt.Errorf("%w: its version is %d instead of %d", errReplace, version, formatVersion)
}

// check fails if the file is damaged, for example after a loss of power.
func (d *Database) check(ctx context.Context) error {
	var result string
	if err := d.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result); err != nil {
		return err
	}
	if result != "ok" {
		return fmt.Errorf("%w: %s", errReplace, result)
	}
	return nil
}

// Close closes the database.
func (d *Database) Close() error { return d.db.Close() }
