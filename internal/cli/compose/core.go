// Package compose contains the commands and the parts of commands that compose resources with Crossplane core or
// functions.
package compose

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/manager"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/localcore"
	"github.com/xpkg-dev/xpkg/internal/runtime/processruntime"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// coreDigestFile is the file with the reference and the digest of core's image. With it, a control plane whose registry
// cannot be reached starts the image that it has.
const coreDigestFile = "core-image"

// core implements [manager.Core].
type core struct {
	args    []string
	reports manager.CoreReports

	location location.Location
	// artifact is the image of a file. It is nil for the image of a registry.
	artifact oci.Artifact
	close    func() error

	// wasReady reports that core was ready once.
	wasReady atomic.Bool

	mu     sync.Mutex
	digest oci.Digest
}

// OpenCore opens the image of a core: a reference, an archive, an OCI layout, or an executable. The arguments
// are further arguments of core. The caller must close it.
func OpenCore(env *terminal.Env, where string, args []string) (manager.Core, error) {
	l, err := location.Parse(where)
	if err != nil {
		return nil, err
	}
	c := &core{args: args, location: l, close: func() error { return nil }}
	switch l.Kind {
	case location.Registry:
		return c, nil
	case location.Stream:
		return nil, terminal.ErrUsage.New(nil, "the image of Crossplane core cannot be read from the standard input").
			WithDo("Pass a reference, an archive, or an executable.")
	case location.File:
		executable, err := localcore.IsExecutable(l.Path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, archive.ErrArchiveNotFound.New(nil, "the file %s does not exist", l.Path).
				WithDo("Check the path. A reference must have a :tag or an @sha256 digest.")
		}
		if err == nil && executable {
			c.artifact, err = localcore.BinaryImage(env.Context, l.Path)
			return c, err
		}
	}
	var limits flags.LimitFlags
	opened, err := location.OpenPath(env, l, limits.ArchiveLimit(), limits.ImageLimits())
	if err != nil {
		return nil, err
	}
	c.artifact, c.close = opened, opened.Close
	return c, nil
}

// Report implements [manager.Core].
func (c *core) Report(r manager.CoreReports) { c.reports = r }

// Close implements [manager.Core].
func (c *core) Close() error { return c.close() }

// Contents implements [manager.Core].
func (c *core) Contents() []oci.Digest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.digest.IsZero() {
		return nil
	}
	return []oci.Digest{c.digest}
}

// Start implements [manager.Core].
func (c *core) Start(
	ctx context.Context, o *controller.Options, source *fetch.Source, roots *sandbox.Roots, host *processruntime.Host,
	dir string,
) (wait func(), err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			c.reports.Refused(err)
		}
	}()
	image, err := c.image(ctx, source, dir)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.digest = image.Digest
	c.mu.Unlock()
	root, err := roots.Image(ctx, image.Origin, image.Digest)
	if err != nil {
		return nil, err
	}
	image.Version, err = localcore.VersionOf(root.Config, c.location.Ref.Tag)
	if root.Release != nil {
		root.Release()
	}
	if err != nil {
		return nil, err
	}
	if image.Version == "" {
		o.Log.WarnContext(ctx, "the version of Crossplane core is unknown, so packages are not checked against it")
	}
	local, err := localcore.New(localcore.Options{
		Config: o.Config, Namespace: controller.DefaultNamespace, Image: image, Supervisor: host.Supervisor,
		Images:  host.Images,
		Address: host.Address, Args: c.args, Log: o.Log, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	o.CrossplaneVersion = image.Version
	var running sync.WaitGroup
	managerReady := o.Ready
	ready := func(health string) {
		c.reports.Ready(image.Version, health)
		c.wasReady.Store(true)
		managerReady()
	}
	begin := sync.OnceFunc(func() {
		running.Go(func() { local.Run(ctx, localcore.Events{Ready: ready, Failed: c.fail}) })
	})
	o.Ready = func() {
		begin()
		// The first start waits for core. A manager that recovers later is ready without it.
		if c.wasReady.Load() {
			managerReady()
		}
	}
	return running.Wait, nil
}

// fail reports that core does not become ready. An image that can never run ends the start.
func (c *core) fail(err error) {
	if !errcode.From(err).Code.Class.Retry {
		c.reports.Refused(err)
		return
	}
	c.reports.Failed(err)
}

// image returns the image of core, whose content is stored unless it is the image of a registry.
func (c *core) image(ctx context.Context, source *fetch.Source, dir string) (localcore.Image, error) {
	if c.artifact != nil {
		ref := oci.Reference{Registry: "localhost", Repository: "crossplane/crossplane"}
		err := source.Store().Add(ctx, c.artifact, oci.Limits{})
		return localcore.Image{Origin: fetch.Plain(ref), Digest: c.artifact.Root().Digest}, err
	}
	o := fetch.Plain(c.location.Ref)
	recorded := filepath.Join(dir, coreDigestFile)
	digest, err := source.Resolve(ctx, o, 0)
	if err != nil {
		known, ok := readCoreDigest(ctx, recorded, c.location.Ref)
		if !ok || ctx.Err() != nil {
			return localcore.Image{}, err
		}
		return localcore.Image{Origin: o, Digest: known}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return localcore.Image{}, err
	}
	err = fileutil.ReplaceFile(recorded, 0o600, []byte(c.location.Ref.WithDigest(digest).String()+"\n"))
	return localcore.Image{Origin: o, Digest: digest}, err
}

// readCoreDigest returns the recorded digest of a reference.
func readCoreDigest(ctx context.Context, file string, ref oci.Reference) (oci.Digest, bool) {
	content, err := fileutil.ReadFile(ctx, file)
	if err != nil {
		return oci.Digest{}, false
	}
	recorded, err := oci.ParseReference(string(content[:max(0, len(content)-1)]), oci.ParseOptions{})
	if err != nil || recorded.WithDigest(oci.Digest{}).String() != ref.WithDigest(oci.Digest{}).String() {
		return oci.Digest{}, false
	}
	return recorded.Digest, true
}
