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

	"github.com/xpkg-dev/xpkg/internal/oci"
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
	// Limit is how many bytes the cache may keep. What people put beside the store does
	// not count. 0 is the limit that was set for all, and none when there is no such.
	Limit int64
	// LimitForAll sets the limit for all that open the cache without one of their own,
	// from now on.
	LimitForAll bool
	// OCILimits bound what is read of one package.
	OCILimits oci.Limits
	// Now gives the time; the system clock when it is nil.
	Now func() time.Time
	// Before is that of [oci.StoreOptions].
	Before func(change string) error
}

// Cache is an open package cache. It can be used by many goroutines.
type Cache struct {
	dir    string
	root   *os.Root
	store  *oci.Store
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

// Open opens the package cache in dir, and makes it when it does not exist. It
// fails as [oci.OpenStore] does. A cache that has more than its limit is made
// smaller as far as possible.
func Open(dir string, o Options) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, oci.ErrStoreWrite.New(err, "cannot open the package cache %s", dir)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, oci.ErrStoreWrite.New(err, "cannot make the package cache %s", dir)
	}
	c := &Cache{
		dir: dir, limit: o.Limit, limits: o.OCILimits.WithDefaults(), now: o.Now,
		importing: make(chan struct{}, 1), imported: map[string]imported{},
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.root, err = os.OpenRoot(dir); err != nil {
		return nil, oci.ErrStoreWrite.New(err, "cannot open the package cache %s", dir)
	}
	c.store, err = oci.OpenStore(filepath.Join(dir, storeDir), oci.StoreOptions{Now: c.now, MakeRoom: c.makeRoom, Before: o.Before})
	if err != nil {
		return nil, errors.Join(err, c.root.Close())
	}
	if err := c.settleLimit(context.Background(), o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	// Where it is not possible, the next write says why.
	_ = c.makeRoom(context.Background(), oci.Need{}, func() error { return nil })
	return c, nil
}

// settleLimit finds out which limit holds, and sets it for all.
func (c *Cache) settleLimit(ctx context.Context, o Options) error {
	kept, err := c.store.GetRecord(ctx, limitKind, "")
	if err != nil && !oci.ErrBlobNotFound.Is(err) {
		return err
	}
	// What cannot be read is no limit, until somebody sets one again.
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
	return c.store.PutRecord(oci.Record{Kind: limitKind, Data: fmt.Appendln(nil, o.Limit)})
}

// Store is where the content is.
func (c *Cache) Store() *oci.Store { return c.store }

// Dir is the folder of the cache.
func (c *Cache) Dir() string { return c.dir }

// Close gives up the folder. Content that is open stays readable.
func (c *Cache) Close() error { return errors.Join(c.store.Close(), c.root.Close()) }
