package registry

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
)

// LocalOptions configure the site of a registry of this process that every client may read.
type LocalOptions struct {
	// Host is the host in the names of the packages.
	Host string
	// Images serves the content of Store.
	Images http.Handler
	Store  *storage.Store
	// Dir is the folder for caches. It can be deleted while there is no site.
	Dir string
	Log *slog.Logger
}

// NewLocalSite returns the site of a registry of this process, and its packages. It publishes no index. It accesses the
// registry only while it runs.
func NewLocalSite(o LocalOptions) (*Site, *Packages) {
	packages := NewPackages(o.Host, o.Dir, o.Images)
	policy := &access.Policy{}
	return NewSite(SiteOptions{
		Host: o.Host, Dir: filepath.Clean(o.Dir), Indexer: NewLocalIndexer(packages, o.Host), Log: o.Log, Now: time.Now,
		Repositories: func(ctx context.Context) ([]string, error) { return repositoriesIn(ctx, o.Store) },
		Policy:       func() *access.Policy { return policy },
		Identify:     func(*http.Request) access.Subject { return access.Subject{} },
	}), packages
}
