package dependencies

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ContentsFlags select packages with their dependencies, whose content a command reads.
type ContentsFlags struct {
	Package []string `short:"p" sep:"none" placeholder:"PACKAGE" help:"Package whose kinds are known, with its dependencies: a folder with a crossplane.yaml, REPOSITORY:TAG or REPOSITORY@CONSTRAINT. Can be repeated. Default is this folder."`
	Lock    string   `placeholder:"FILE" help:"Lock file with the packages whose kinds are known, at their locked digests."`
	resolverFlags
}

// Content is a package of a dependency tree with its content.
type Content struct {
	// Reference is the package with its tag and digest.
	Reference string
	*xpkg.Package
}

// readsAtOnce is the maximum number of packages that are read concurrently.
const readsAtOnce = 4

// Contents returns the packages of the lock file, or the packages of the flags with their dependencies, ordered by
// reference. It accesses no registry for locked packages that the package cache contains. Roots are additional packages.
func (f ContentsFlags) Contents(env *terminal.Env, packages []string) (_ []Content, err error) {
	var locked lockfile.File
	if f.Lock != "" {
		if locked, err = ReadClosure(env, f.Lock); err != nil {
			return nil, err
		}
	}
	var roots []dependency.Root
	if f.Lock == "" && len(packages) > 0 {
		if roots, err = (RootArgs{Packages: packages}).roots(f.DefaultRegistry); err != nil {
			return nil, err
		}
	}
	if len(roots) == 0 && len(locked.Packages) == 0 {
		return nil, nil
	}
	r, err := f.open(env, nil)
	if err != nil {
		return nil, err
	}
	defer terminal.Close(&err, r)
	if len(roots) > 0 {
		got, err := r.resolve(env, resolver.Request{Roots: roots})
		if err != nil {
			return nil, err
		}
		locked = got.File
	}
	return r.contents(env, locked.Packages)
}

// contents reads packages concurrently.
func (r *rootResolver) contents(env *terminal.Env, packages []lockfile.Package) ([]Content, error) {
	p := terminal.StartTask(env.Stderr, "reading %s", wording.Count(len(packages), "package"))
	defer p.End()
	out := make([]Content, len(packages))
	group, ctx := errgroup.WithContext(env.Context)
	group.SetLimit(readsAtOnce)
	for i, pkg := range packages {
		group.Go(func() (err error) {
			out[i].Reference = pkg.Reference().String()
			out[i].Package, err = r.read(ctx, pkg)
			return err
		})
	}
	return out, group.Wait()
}

func (r *rootResolver) read(ctx context.Context, p lockfile.Package) (*xpkg.Package, error) {
	o, err := r.locate(ctx, p.Reference())
	if err != nil {
		return nil, err
	}
	return r.content.Read(ctx, o, p.Digest, true)
}
