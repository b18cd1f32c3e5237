package dependencies

import (
	"context"
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ContentsFlags select packages with their dependencies, whose content a command reads.
type ContentsFlags struct {
	Package []string `short:"p" sep:"none" placeholder:"PACKAGE" help:"Package whose kinds are known, with its dependencies: its folder, a .xpkg file, REPOSITORY:TAG or REPOSITORY@CONSTRAINT. Can be repeated. Default is this folder."`
	Lock    string   `placeholder:"FILE" help:"Lock file with the packages whose kinds are known, at their locked digests."`
	resolverFlags
	flags.LimitFlags
}

// Content is a package of a dependency tree with its content.
type Content struct {
	// Reference is the package with its tag and digest.
	Reference string
	// Name is the name of the object that installs the package as a dependency.
	Name string
	// Locked is the package in the dependency tree.
	Locked lockfile.Package
	*xpkg.Package
}

// Closure is a dependency tree with the content of its packages. It must be closed.
type Closure struct {
	// Contents are the packages of registries, ordered by reference.
	Contents []Content
	// Files are the packages in files. Their references are the paths.
	Files    []Content
	resolver *rootResolver
}

// All returns the packages in files and those of registries.
func (c *Closure) All() []Content { return slices.Concat(c.Files, c.Contents) }

// Close closes the source of the packages.
func (c *Closure) Close() error {
	if c.resolver == nil {
		return nil
	}
	return c.resolver.Close()
}

// Source returns the source of the packages, and nil without packages.
func (c *Closure) Source() *fetch.Source {
	if c.resolver == nil {
		return nil
	}
	return c.resolver.content
}

// OpenSource opens the source of the packages of a closure without packages.
func (c *Closure) OpenSource(env *terminal.Env, f ContentsFlags) (err error) {
	if c.resolver == nil {
		c.resolver, err = f.open(env, nil)
	}
	return err
}

// Locate returns the locations from which a reference is read.
func (c *Closure) Locate(ctx context.Context, ref oci.Reference) (fetch.Origin, error) {
	return c.resolver.locate(ctx, ref)
}

// readsAtOnce is the maximum number of packages that are read concurrently.
const readsAtOnce = 4

// Contents returns the packages of the lock file, or the packages of the flags with their dependencies, and before them
// the packages in files. It accesses no registry for locked packages that the package cache contains. Roots are
// additional packages.
func (f ContentsFlags) Contents(env *terminal.Env, packages []string) (_ []Content, err error) {
	c, err := f.Closure(env, packages)
	if err != nil {
		return nil, err
	}
	defer terminal.Close(&err, c)
	return c.All(), nil
}

// Closure returns the packages of Contents with access to their images.
func (f ContentsFlags) Closure(env *terminal.Env, packages []string) (_ *Closure, err error) {
	var locked lockfile.File
	if f.Lock != "" {
		if locked, err = ReadClosure(env, f.Lock); err != nil {
			return nil, err
		}
	}
	files, roots, err := f.roots(env, packages)
	if err != nil {
		return nil, err
	}
	if len(roots) == 0 && len(locked.Packages) == 0 {
		return &Closure{Files: files}, nil
	}
	r, err := f.open(env, nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if len(roots) > 0 {
		got, err := r.resolve(env, resolver.Request{Roots: roots})
		if err != nil {
			return nil, err
		}
		locked = got.File
	}
	contents, err := r.contents(env, locked.Packages)
	if err != nil {
		return nil, err
	}
	names := inventory.LockNames(locked)
	for i := range contents {
		contents[i].Name = names[contents[i].Locked.Repository]
	}
	return &Closure{contents, files, r}, nil
}

// roots returns the packages in files, and, without a lock file, the roots of all packages.
func (f ContentsFlags) roots(
	env *terminal.Env, packages []string,
) (files []Content, roots []dependency.Root, err error) {
	for _, p := range packages {
		var more []dependency.Root
		switch {
		case location.IsPackageFile(p):
			var pkg *xpkg.Package
			if pkg, err = f.readFile(env, p); err != nil {
				return nil, nil, err
			}
			files = append(files, Content{Reference: p, Package: pkg})
			more, err = metaRoots(pkg.Meta, f.DefaultRegistry)
		case f.Lock == "":
			more, err = rootsOf(env, p, f.DefaultRegistry)
		}
		if err != nil {
			return nil, nil, err
		}
		roots = append(roots, more...)
	}
	if f.Lock != "" {
		roots = nil
	}
	return files, roots, nil
}

// readFile reads the package in a file.
func (f ContentsFlags) readFile(env *terminal.Env, path string) (*xpkg.Package, error) {
	p := terminal.StartTask(env.Stderr, "reading %s", path)
	defer p.End()
	return location.ReadFile(env, path, f.LimitFlags)
}

// contents reads packages concurrently.
func (r *rootResolver) contents(env *terminal.Env, packages []lockfile.Package) ([]Content, error) {
	p := terminal.StartTask(env.Stderr, "reading %s", wording.Count(len(packages), "package"))
	defer p.End()
	out := make([]Content, len(packages))
	_, err := fileutil.Await(env.Context, func() (struct{}, error) {
		return struct{}{}, p.Each(env.Context, len(packages), readsAtOnce, func(ctx context.Context, i int) (err error) {
			out[i].Reference, out[i].Locked = packages[i].Reference().String(), packages[i]
			out[i].Package, err = r.read(ctx, packages[i])
			return err
		})
	})
	return out, err
}

func (r *rootResolver) read(ctx context.Context, p lockfile.Package) (*xpkg.Package, error) {
	o, err := r.locate(ctx, p.Reference())
	if err != nil {
		return nil, err
	}
	return r.content.Read(ctx, o, p.Digest, true)
}
