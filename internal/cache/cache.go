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
	// grace is the time after its last use in which a package is treated as in use.
	grace = 10 * time.Minute

	// limitKind is the kind of the record with the limit for all processes.
	limitKind = "limit"

	dirMode fs.FileMode = 0o755
)

// Options configures a cache.
type Options struct {
	// Limit is the maximum size of the cache in bytes. It does not include sideloaded files.
	// 0 means the limit stored in the cache, if any, and otherwise no limit.
	Limit int64
	// LimitForAll stores the limit in the cache, for processes that open it without a limit.
	LimitForAll bool
	// User names the control plane whose packages [Cache.Use] records, such as its data directory or its address.
	User string
	// OCILimits are the limits for reading one package.
	OCILimits oci.Limits
	// Now returns the current time. Nil means the system clock.
	Now func() time.Time
	// Before is [store.Options].Before.
	Before func(change string) error
}

// Cache is an open package cache. It is safe for concurrent use.
type Cache struct {
	dir    string
	root   *os.Root
	store  *store.Store
	limit  int64
	limits oci.Limits
	user   string
	now    func() time.Time

	// docs caches the references of manifests, which do not change.
	docs documents
	// importing serializes imports of files into the store.
	importing chan struct{}
	mu        sync.Mutex
	imported  map[string]imported
}

// Open opens the package cache in dir, and creates it if it does not exist. It fails as
// [store.Open] does, and refuses a directory that another user can replace, except in a pod.
// A cache above its limit is reduced as far as possible.
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
	if err := checkAncestors(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, store.ErrStoreWrite.New(err, "cannot create the package cache %s", dir)
	}
	// Another user may have created a directory since the first check.
	if err := checkAncestors(dir); err != nil {
		return nil, err
	}
	c := &Cache{
		dir: dir, limit: o.Limit, user: o.User, limits: o.OCILimits.WithDefaults(), now: o.Now,
		importing: make(chan struct{}, 1), imported: map[string]imported{},
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.root, err = os.OpenRoot(dir); err != nil {
		return nil, store.ErrStoreWrite.New(err, "cannot open the package cache %s", dir)
	}
	c.store, err = store.Open(filepath.Join(dir, storeDir), store.Options{
		Now: c.now, MakeRoom: c.makeRoom, Before: o.Before,
	})
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

// podVariable is set in every container of a pod.
const podVariable = "KUBERNETES_SERVICE_HOST"

// checkAncestors refuses a cache that another user can replace, with the names of packages
// in it. In a pod all users can write to a volume, and there is only one user.
func checkAncestors(dir string) error {
	if os.Getenv(podVariable) != "" {
		return nil
	}
	err := fileutil.CheckAncestors(filepath.Join(dir, storeDir))
	var replaceable *fileutil.ReplaceableError
	if errors.As(err, &replaceable) {
		return store.ErrUnsafeStore.New(err, "another user can replace the package cache %s", dir).
			WithDo("%s", replaceable.Do("--cache-dir"))
	}
	// Every other error occurs again when the directory is used.
	return nil
}

// settleLimit determines the limit, and stores it if LimitForAll is set.
func (c *Cache) settleLimit(ctx context.Context, o Options) error {
	kept, err := c.store.GetRecord(ctx, limitKind, "")
	if err != nil && !errors.Is(err, oci.ErrBlobNotFound) {
		return err
	}
	// A limit that cannot be parsed is ignored.
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

// Store returns the store of the content.
func (c *Cache) Store() *store.Store { return c.store }

// Dir returns the folder of the cache.
func (c *Cache) Dir() string { return c.dir }

// Close closes the cache. Open content stays readable.
func (c *Cache) Close() error { return errors.Join(c.store.Close(), c.root.Close()) }
