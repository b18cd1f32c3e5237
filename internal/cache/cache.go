package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

const (
	// storeDir is the store within the folder of the cache.
	storeDir = "store"
	// grace is for how long after its last use a package counts as in use.
	grace = 10 * time.Minute

	// limitKind is the record of the limit that holds for all.
	limitKind = "limit"

	dirMode fs.FileMode = 0o755
)

// Options change how a cache works.
type Options struct {
	// Limit is the maximum size of the cache in bytes. Sideloaded files beside the store
	// do not count. 0 means the limit stored in the cache, if any, and otherwise no
	// limit.
	Limit int64
	// LimitForAll sets the limit for all that open the cache without one of their own,
	// from now on.
	LimitForAll bool
	// OCILimits are the limits for reading one package.
	OCILimits oci.Limits
	// Now returns the current time. Nil means the system clock.
	Now func() time.Time
	// Before is [store.Options].Before.
	Before func(change string) error
}

// Cache is an open package cache. It can be used by many goroutines.
type Cache struct {
	dir    string
	root   *os.Root
	store  *store.Store
	limit  int64
	limits oci.Limits
	now    func() time.Time

	// docs remembers what manifests refer to: content does not change.
	docs documents
	// importing lets one file at a time be read into the store.
	importing chan struct{}
	mu        sync.Mutex
	imported  map[string]imported
}

// Open opens the package cache in dir, and creates it if it does not exist. It fails as
// [store.Open] does. A cache above its limit is reduced as far as possible.
func Open(dir string, o Options) (*Cache, error) {
	c, err := openCache(dir, o)
	var failed *errcode.Error
	if errors.Is(err, store.ErrStoreWrite) && errors.As(err, &failed) {
		if advice := fileutil.DirectoryAdvice(err, dir, "--cache-dir or --data-dir"); advice != "" {
			return nil, failed.WithDo("%s", advice)
		}
	}
	return c, err
}

func openCache(dir string, o Options) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, store.ErrStoreWrite.New(err, "cannot open the package cache %s", dir)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, store.ErrStoreWrite.New(err, "cannot create the package cache %s", dir)
	}
	c := &Cache{
		dir: dir, limit: o.Limit, limits: o.OCILimits.WithDefaults(), now: o.Now,
		importing: make(chan struct{}, 1), imported: map[string]imported{},
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.root, err = os.OpenRoot(dir); err != nil {
		return nil, store.ErrStoreWrite.New(err, "cannot open the package cache %s", dir)
	}
	c.store, err = store.Open(filepath.Join(dir, storeDir), store.Options{Now: c.now, MakeRoom: c.makeRoom, Before: o.Before})
	if err != nil {
		return nil, errors.Join(err, c.root.Close())
	}
	if err := c.settleLimit(context.Background(), o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	// If that fails, the next write reports the reason.
	_ = c.makeRoom(context.Background(), store.Need{}, func() error { return nil })
	return c, nil
}

// settleLimit finds out which limit holds, and sets it for all.
func (c *Cache) settleLimit(ctx context.Context, o Options) error {
	kept, err := c.store.GetRecord(ctx, limitKind, "")
	if err != nil && !errors.Is(err, oci.ErrBlobNotFound) {
		return err
	}
	// A limit that cannot be parsed counts as no limit.
	forAll, err := strconv.ParseInt(strings.TrimSpace(string(kept.Data)), 10, 64)
	if err != nil || forAll < 0 {
		forAll = 0
	}
	if o.Limit == 0 {
		c.limit = forAll
		return nil
	}
	if !o.LimitForAll || o.Limit == forAll {
		return nil
	}
	return c.store.PutRecord(store.Record{Kind: limitKind, Data: fmt.Appendln(nil, o.Limit)})
}

// Store is where the content is.
func (c *Cache) Store() *store.Store { return c.store }

// Dir is the folder of the cache.
func (c *Cache) Dir() string { return c.dir }

// Close closes the cache. Open content stays readable.
func (c *Cache) Close() error { return errors.Join(c.store.Close(), c.root.Close()) }
