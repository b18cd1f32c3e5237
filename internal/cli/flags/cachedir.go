package flags

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// PackagesDir returns the package cache within a cache folder, such as the cache folder of the user or of a control
// plane.
const PackagesDir = "packages"

// CacheLimitFlag bounds the size of the package cache.
type CacheLimitFlag struct {
	CacheLimit Amount `default:"10Gi" placeholder:"SIZE" env:"XPKG_CACHE_LIMIT" config:"" help:"Maximum size of the package cache. Least recently used packages are evicted first; packages in use never are. Default is 10Gi."`
}

// DefaultCacheDir returns the default package cache of the user: xpkg/packages in the cache
// folder, or a folder of the temporary files for a user without a home folder, such as a
// service. The cache refuses a folder that another user owns or can change.
func DefaultCacheDir() string {
	user, err := os.UserCacheDir()
	if err != nil {
		return filepath.Join(os.TempDir(), fmt.Sprintf("xpkg-%s-%d", PackagesDir, os.Getuid()))
	}
	return filepath.Join(user, "xpkg", PackagesDir)
}

// CacheFlags selects the package cache of a command.
type CacheFlags struct {
	CacheDir string `placeholder:"DIR" env:"XPKG_CACHE_DIR" config:"" help:"Folder of the package cache. Default is the cache of the control plane of --data-dir, of KUBECONFIG or of this machine; without one, xpkg/packages in the user's cache folder."`
	DataDir  string `placeholder:"DIR" env:"XPKG_DATA_DIR" config:"" help:"Data directory of the control plane that uses the package cache."`
}

// dir returns the directory of the package cache.
func (f CacheFlags) dir() (string, error) {
	switch {
	case f.CacheDir != "":
		return f.CacheDir, nil
	case f.DataDir != "":
		return planeCacheDir(f.DataDir)
	}
	if dir := (DataDirFlag{}).running(); dir != "" {
		return planeCacheDir(dir)
	}
	return DefaultCacheDir(), nil
}

// FunctionsDir returns the folder in the package cache for the unpacked images of functions that commands run.
func (f CacheFlags) FunctionsDir() (string, error) {
	dir, err := f.dir()
	return filepath.Join(dir, "functions"), err
}

// planeCacheDir returns the package cache of a control plane. It creates no directory if there is no control
// plane, because a control plane refuses a folder with other files.
func planeCacheDir(dataDir string) (string, error) {
	state, err := up.Status(dataDir)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(state.DataDir, "cache")
	if _, err := os.Stat(folder); err != nil {
		return "", terminal.ErrUsage.New(err, "%s is not the data directory of a control plane", dataDir).
			WithDo("Use a data directory of `xpkg up`, or a folder with --cache-dir.")
	}
	return filepath.Join(folder, PackagesDir), nil
}

// Open opens the package cache.
func (f CacheFlags) Open(limit Amount) (*cache.Cache, error) {
	dir, err := f.dir()
	if err != nil {
		return nil, err
	}
	return cache.Open(dir, cache.Options{Limit: int64(limit)})
}

// OpenExisting opens the package cache for a command that adds nothing to it. It creates no folder that the user has
// named.
func (f CacheFlags) OpenExisting() (*cache.Cache, error) {
	if f.CacheDir != "" && !f.Exists() {
		return nil, terminal.ErrUsage.New(nil, "%s does not exist", f.CacheDir).
			WithDo(
				"Name the folder of a package cache with --cache-dir. The first command that adds a package to a package cache creates its folder.",
			)
	}
	return f.Open(0)
}

// Exists reports whether the package cache exists.
func (f CacheFlags) Exists() bool {
	dir, err := f.dir()
	if err != nil {
		return false
	}
	_, err = os.Stat(dir)
	return err == nil
}
