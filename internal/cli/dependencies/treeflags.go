package dependencies

import (
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// TreeFlags selects a dependency tree that is not installed in a cluster.
type TreeFlags struct {
	Lock string `placeholder:"FILE" help:"Read this lock file instead of the cluster."`
	resolverFlags
}

// of returns a dependency tree: from the lock file, or from a new resolution.
func (f TreeFlags) of(env *terminal.Env, what []string) (_ lockfile.File, err error) {
	if f.Lock != "" {
		return readLock(env, f.Lock)
	}
	roots, err := RootArgs{what}.roots(env, f.DefaultRegistry)
	if err != nil {
		return lockfile.File{}, err
	}
	r, err := f.open(env, nil)
	if err != nil {
		return lockfile.File{}, err
	}
	defer terminal.Close(&err, r)
	got, err := r.resolve(env, resolver.Request{Roots: roots})
	return got.File, err
}
