package dependencies

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// vendoredLock is the name of the lock file in a folder of packages.
const vendoredLock = "xpkg.lock"

// copiesAtOnce is the maximum number of concurrent copies.
const copiesAtOnce = 4

type depsVendorCmd struct {
	RootArgs
	Lock string `placeholder:"FILE" help:"Collect the packages of this lock file."`
	To   string `required:"" placeholder:"DIR" help:"Folder of the OCI layout. Packages that it already contains are not downloaded again."`
	resolverFlags
}

// Run copies the packages of a dependency tree into a folder.
func (c *depsVendorCmd) Run(env *terminal.Env) (err error) {
	dir := strings.TrimPrefix(c.To, location.LayoutPrefix)
	if fileutil.IsStdout(dir) {
		return terminal.ErrUsage.New(nil, "--to %s is standard output, and an OCI layout is a directory", c.To).
			WithDo("Name a directory.")
	}
	into, err := archive.OpenCollection(dir, oci.Limits{})
	if err != nil {
		return err
	}
	r, err := c.resolverFlags.open(env, nil)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, r)
	f, err := c.closure(env, r)
	if err != nil {
		return err
	}
	if err := collect(env, r, into, f.Packages); err != nil {
		return err
	}
	if err := into.Seal(); err != nil {
		return err
	}
	if err := writeLock(env, filepath.Join(dir, vendoredLock), f); err != nil {
		return err
	}
	for _, p := range f.Packages {
		fmt.Fprintln(env.Stdout, terminal.Safe(p.Reference().String()))
	}
	return nil
}

// closure returns the dependency tree of the lock file, or a newly resolved one.
func (c *depsVendorCmd) closure(env *terminal.Env, r *rootResolver) (lockfile.File, error) {
	if c.Lock != "" {
		if len(c.Packages) > 0 {
			return lockfile.File{},
				terminal.ErrUsage.New(nil, "packages and --lock cannot be used together").WithDo("Remove one of them.")
		}
		return ReadClosure(env, c.Lock)
	}
	roots, err := c.roots(env, c.DefaultRegistry)
	if err != nil {
		return lockfile.File{}, err
	}
	if roots == nil {
		return lockfile.File{}, terminal.ErrUsage.New(nil, "no package is given, and this folder is not a package").
			WithDo("Name a package, its file, its folder, or a lock file with --lock.")
	}
	got, err := r.resolve(env, resolver.Request{Roots: roots})
	return got.File, err
}

// collect copies packages concurrently.
func collect(env *terminal.Env, r *rootResolver, into *archive.Collection, packages []lockfile.Package) error {
	p := terminal.StartTask(env.Stderr, "collecting %s", wording.Count(len(packages), "package"))
	defer p.End()
	notes := make([]string, len(packages))
	err := p.Each(env.Context, len(packages), copiesAtOnce, func(ctx context.Context, i int) error {
		meta, err := r.collect(ctx, into, packages[i])
		if image := meta.ControllerImage; image != "" {
			notes[i] = fmt.Sprintf(
				"%s runs the image %s, which is not part of the package; copy it with `xpkg copy`", packages[i].Repository, image,
			)
		}
		return err
	})
	if err != nil {
		return err
	}
	p.End()
	view.Notes(env.Stderr, notes...)
	return nil
}

// collect copies one package, and verifies its tag and its metadata against the lock file.
func (r *rootResolver) collect(ctx context.Context, into *archive.Collection, p lockfile.Package) (xpkg.Meta, error) {
	if err := versions.CheckTag(ctx, r.content, r.locate, p.Reference()); err != nil {
		return xpkg.Meta{}, err
	}
	ref := p.Reference()
	o, err := r.locate(ctx, ref)
	if err != nil {
		return xpkg.Meta{}, err
	}
	from, err := r.content.Artifact(ctx, o, p.Digest)
	if err != nil {
		return xpkg.Meta{}, err
	}
	if err := into.Add(ctx, ref, from); err != nil {
		return xpkg.Meta{}, err
	}
	return checkCollected(ctx, into, p)
}

// checkCollected verifies a copied package.
func checkCollected(ctx context.Context, into *archive.Collection, p lockfile.Package) (_ xpkg.Meta, err error) {
	a, err := into.Artifact(p.Reference())
	if err != nil {
		return xpkg.Meta{}, err
	}
	defer terminal.Close(&err, a)
	m, err := oci.FindManifest(ctx, a, oci.Platform{}, oci.Limits{})
	if err != nil {
		return xpkg.Meta{}, err
	}
	text, err := packagestream.Read(ctx, a, m, packagestream.Options{})
	if err != nil {
		return xpkg.Meta{}, err
	}
	meta, err := xpkg.ReadMeta(text, xpkg.ReadOptions{File: p.Reference().String()})
	if err != nil {
		return xpkg.Meta{}, err
	}
	return meta, p.Matches(meta.Kind, meta.Dependencies(), meta.Kinds)
}
