package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/resolve"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// vendoredLock is the lock file within a folder of packages.
const vendoredLock = "xpkg.lock"

// copiesAtOnce bounds how many packages are copied at the same time.
const copiesAtOnce = 4

type depsVendorCmd struct {
	whatArgs
	Lock string `placeholder:"FILE" help:"Collect exactly what this lock file has."`
	To   string `required:"" placeholder:"DIR" help:"Folder of the OCI layout. What is in it already is not read again."`
	resolverFlags
}

// Run collects a closure.
func (c *depsVendorCmd) Run(env *Env) (err error) {
	dir := strings.TrimPrefix(c.To, layoutPrefix)
	into, err := oci.OpenCollection(dir, oci.Limits{})
	if err != nil {
		return err
	}
	r, err := c.resolverFlags.open(nil)
	if err != nil {
		return err
	}
	defer closing(&err, r)
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
	if err := writeLock(filepath.Join(dir, vendoredLock), f); err != nil {
		return err
	}
	for _, p := range f.Packages {
		fmt.Fprintln(env.Stdout, safe(p.Reference().String()))
	}
	return nil
}

// closure is what the lock file has, or what is found now.
func (c *depsVendorCmd) closure(env *Env, r *resolver) (lockfile.File, error) {
	if c.Lock != "" {
		if len(c.What) > 0 {
			return lockfile.File{}, ErrUsage.New(nil, "both a lock file and something else is to be collected").WithDo("Leave one of them out.")
		}
		return readClosure(c.Lock)
	}
	roots, err := c.roots(c.DefaultRegistry)
	if err != nil {
		return lockfile.File{}, err
	}
	if roots == nil {
		return lockfile.File{}, ErrUsage.New(nil, "nothing to collect is named, and this folder is no package").WithDo("Name a package, a folder with a crossplane.yaml, or a lock file with --lock.")
	}
	got, err := r.resolve(env, resolve.Request{Roots: roots})
	return got.File, err
}

// collect copies packages, a few at the same time.
func collect(env *Env, r *resolver, into *oci.Collection, packages []lockfile.Package) error {
	p := begin(env.Stderr, "collecting %s", wording.Count(len(packages), "package"))
	defer p.end()
	group, ctx := errgroup.WithContext(env.Context)
	group.SetLimit(copiesAtOnce)
	images := make([]string, len(packages))
	for i, pkg := range packages {
		group.Go(func() error {
			meta, err := r.collect(ctx, into, pkg)
			images[i] = meta.ControllerImage
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	p.end()
	for i, image := range images {
		if image != "" {
			fmt.Fprintf(env.Stderr, "note: %s runs the image %s, which is not part of it: copy it with xpkg copy\n", safe(packages[i].Package), safe(image))
		}
	}
	return nil
}

// collect copies one package, and proves that it is what is locked.
func (r *resolver) collect(ctx context.Context, into *oci.Collection, p lockfile.Package) (format.Meta, error) {
	ref := p.Reference()
	o, err := r.Locate(ctx, ref)
	if err != nil {
		return format.Meta{}, err
	}
	from, err := r.content.Artifact(ctx, o, p.Digest)
	if err != nil {
		return format.Meta{}, err
	}
	if err := into.Add(ctx, ref, from); err != nil {
		return format.Meta{}, err
	}
	return checkCollected(ctx, into, p)
}

// checkCollected reads a package where it was copied to.
func checkCollected(ctx context.Context, into *oci.Collection, p lockfile.Package) (_ format.Meta, err error) {
	a, err := into.Artifact(p.Reference())
	if err != nil {
		return format.Meta{}, err
	}
	defer closing(&err, a)
	m, err := oci.FindManifest(ctx, a, oci.Platform{}, oci.Limits{})
	if err != nil {
		return format.Meta{}, err
	}
	stream, err := oci.ReadPackageYAML(ctx, a, m, oci.Limits{})
	if err != nil {
		return format.Meta{}, err
	}
	meta, err := format.ReadMeta(stream, format.ReadOptions{File: p.Reference().String()})
	if err != nil {
		return format.Meta{}, err
	}
	return meta, p.Matches(meta.Kind, meta.Dependencies())
}
