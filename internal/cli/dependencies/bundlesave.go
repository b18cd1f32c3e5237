package dependencies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/bundle"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// readsForBundle is the number of packages that are read at the same time.
const readsForBundle = 4

type bundleSaveCmd struct {
	Packages []string `arg:"" optional:"" name:"package" help:"A lock file, or packages with their dependencies: REPOSITORY:TAG; REPOSITORY@CONSTRAINT; REPOSITORY@sha256:DIGEST; or, for the dependencies alone, the folder of a package or a .xpkg file. Default is this folder."`
	Output   string   `short:"o" required:"" placeholder:"FILE" help:"File to write. An unfinished FILE.partial is continued."`
	Platform []string `sep:"," placeholder:"OS/ARCH" help:"Platforms whose images are included, such as linux/amd64. Default is all."`
	Image    []string `sep:"none" placeholder:"REF" help:"Further image to include, such as one that a DeploymentRuntimeConfig or an option of the manager names. Can be repeated."`
	Index    []string `sep:" " placeholder:"REF[,PRIORITY]" env:"XPKG_INDEX" config:"" help:"Index to include, in which packages that provide required kinds are found; repeat it for several."`
	Since    string   `placeholder:"FILE" help:"Leave out the content of this bundle, which must be loaded first."`
	resolverFlags
}

// Run writes a bundle.
func (c *bundleSaveCmd) Run(env *terminal.Env) (err error) {
	if fileutil.IsStdout(c.Output) {
		return terminal.ErrUsage.New(nil, "a bundle cannot be written to standard output: an unfinished file is continued").
			WithDo("Name a file with -o.")
	}
	if err := c.checkOutput(); err != nil {
		return err
	}
	o := bundle.SaveOptions{SinceName: filepath.Base(c.Since)}
	if o.Platforms, err = parsePlatforms(c.Platform); err != nil {
		return err
	}
	if c.Since != "" {
		if o.Since, err = bundle.Open(c.Since); err != nil {
			return err
		}
		defer terminal.Close(&err, o.Since)
	}
	files, err := content.ReadImageConfigs(env, c.ImageConfig)
	if err != nil {
		return err
	}
	var missing []string
	if o.Configs, missing, err = verificationConfigs(files); err != nil {
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
	o.Lock = lockfile.Encode(f)
	items, err := c.items(env, r, f)
	if err != nil {
		return err
	}
	return c.save(env, items, o, missing)
}

// checkOutput checks that the file can be replaced: an unfinished file behind a link would be another one, and a delta
// in place of its base could not be loaded.
func (c *bundleSaveCmd) checkOutput() error {
	is, err := os.Stat(c.Output)
	if err == nil && !is.Mode().IsRegular() {
		return terminal.ErrUsage.New(nil, "%s is no regular file", c.Output).WithDo("Name a file with -o.")
	}
	if base, failed := os.Stat(c.Since); err == nil && failed == nil && os.SameFile(is, base) {
		return terminal.ErrUsage.New(nil, "%s is the bundle of --since, without which the new one cannot be loaded", c.Output).
			WithDo("Name another file with -o.")
	}
	partial := c.Output + bundle.PartialSuffix
	if at, err := os.Lstat(partial); err == nil && !at.Mode().IsRegular() {
		return terminal.ErrUsage.New(nil, "%s is no regular file", partial).WithDo("Remove it.")
	}
	return nil
}

// save writes the bundle and reports it. Missing are the Secrets of its ImageConfigs that it does not contain.
func (c *bundleSaveCmd) save(env *terminal.Env, items []bundle.Item, o bundle.SaveOptions, missing []string) error {
	p := terminal.StartTask(env.Stderr, "writing %s", c.Output)
	defer p.End()
	o.Note = func(text string) { fmt.Fprintf(p, "note: %s\n", terminal.Safe(text)) }
	o.Progress = func(done, total int64) {
		const unit = 1 << 20 // Sizes below it make no difference for the percentage.
		p.Step(int(done/unit), int(total/unit)+1, " MiB")
	}
	saved, err := bundle.Save(env.Context, c.Output, items, o)
	p.End()
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		view.Notes(env.Stderr, fmt.Sprintf(
			"the ImageConfigs that require signatures are part of the bundle, and the Secrets %s are not: add them to a file of --image-config",
			strings.Join(missing, ", "),
		))
	}
	if len(o.Platforms) > 0 {
		view.Notes(env.Stderr, "the bundle lacks the images of other platforms: most registries refuse indexes without them")
	}
	text := fmt.Sprintf(
		"%s: %s with %s, %s", c.Output, wording.Count(saved.Entries, "artifact"), wording.Count(saved.Blobs, "blob"),
		terminal.Size(saved.Size),
	)
	if c.Since != "" {
		text += fmt.Sprintf(", without %s of %s", terminal.Size(saved.Omitted), o.SinceName)
	}
	return env.Say("%s\n", text)
}

func parsePlatforms(texts []string) ([]oci.Platform, error) {
	var out []oci.Platform
	for _, text := range texts {
		p, err := oci.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b oci.Platform) int { return cmp.Compare(a.String(), b.String()) })
	return out, nil
}

// closure returns the dependency tree of the lock file, or a newly resolved one.
func (c *bundleSaveCmd) closure(env *terminal.Env, r *rootResolver) (lockfile.File, error) {
	if file := slices.IndexFunc(c.Packages, isLockFile); file >= 0 {
		if len(c.Packages) > 1 {
			return lockfile.File{}, terminal.ErrUsage.New(
				nil, "%s is a lock file, beside which no other package can be named", c.Packages[file],
			).WithDo("Add the other packages to the lock file with `xpkg resolve`.")
		}
		return ReadClosure(env, c.Packages[file])
	}
	roots, err := (&RootArgs{c.Packages}).roots(env, c.DefaultRegistry)
	if err != nil {
		return lockfile.File{}, err
	}
	if roots == nil {
		return lockfile.File{}, terminal.ErrUsage.New(nil, "no package is given, and this folder is not a package").
			WithDo("Name a package, its file, its folder, or a lock file.")
	}
	got, err := r.resolve(env, resolver.Request{Roots: roots})
	return got.File, err
}

// isLockFile reports whether an argument names a lock file: standard input, or a file that is neither a package nor a
// folder.
func isLockFile(s string) bool {
	if s == "-" {
		return true
	}
	info, err := os.Stat(s)
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Ext(s) == ".lock"
	}
	return err == nil && !info.IsDir() && location.IsPath(s) && !location.IsPackageFile(s)
}

// items returns the packages of a dependency tree, the images of their runtimes, and the further content of the
// bundle.
func (c *bundleSaveCmd) items(env *terminal.Env, r *rootResolver, f lockfile.File) ([]bundle.Item, error) {
	p := terminal.StartTask(env.Stderr, "reading %s", wording.Count(len(f.Packages), "package"))
	defer p.End()
	items := make([]bundle.Item, len(f.Packages))
	images := make([][]oci.Reference, len(f.Packages))
	err := p.Each(env.Context, len(f.Packages), readsForBundle, func(ctx context.Context, i int) (err error) {
		items[i], images[i], err = r.packageItem(ctx, f.Packages[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	others := slices.Concat(images...)
	for _, text := range c.Image {
		ref, err := runtimeImage(text, defaultImageRegistry)
		if err != nil {
			return nil, err
		}
		others = append(others, ref)
	}
	for _, text := range c.Index {
		ref, _, _, err := content.ParseIndex(text)
		if err != nil {
			return nil, err
		}
		others = append(others, ref)
	}
	slices.SortFunc(others, func(a, b oci.Reference) int { return cmp.Compare(a.String(), b.String()) })
	others = slices.Compact(others)
	more := make([]bundle.Item, len(others))
	err = p.Each(env.Context, len(others), readsForBundle, func(ctx context.Context, i int) error {
		o, err := r.locate(ctx, others[i])
		if err != nil {
			return err
		}
		d, err := r.content.Resolve(ctx, o, 0)
		if err != nil {
			return err
		}
		more[i], err = r.item(ctx, o, others[i].WithDigest(d))
		return err
	})
	return append(items, more...), err
}

// item returns an artifact at an origin under its name.
func (r *rootResolver) item(ctx context.Context, o fetch.Origin, name oci.Reference) (bundle.Item, error) {
	if _, err := r.content.Verify(ctx, o, name.Digest, true); err != nil {
		return bundle.Item{}, err
	}
	a, err := r.content.Artifact(ctx, o, name.Digest)
	if err != nil {
		return bundle.Item{}, err
	}
	client, at, err := r.content.Repository(ctx, o)
	return bundle.Item{Ref: name, Content: a, Client: client, At: at}, err
}

// packageItem returns a package, whose tag and metadata it compares with the lock file, and the images of its runtime
// that are not part of it.
func (r *rootResolver) packageItem(ctx context.Context, p lockfile.Package) (bundle.Item, []oci.Reference, error) {
	ref := p.Reference()
	if err := versions.CheckTag(ctx, r.content, r.locate, ref); err != nil {
		return bundle.Item{}, nil, err
	}
	o, err := r.locate(ctx, ref)
	if err != nil {
		return bundle.Item{}, nil, err
	}
	read, err := r.content.Prove(ctx, o, p.Digest)
	if err != nil {
		return bundle.Item{}, nil, err
	}
	if err := p.Matches(read.Meta.Kind, read.Meta.Dependencies(), read.Meta.Kinds); err != nil {
		return bundle.Item{}, nil, err
	}
	images, err := runtimeImages(read.Meta, ref)
	if err != nil {
		return bundle.Item{}, nil, err
	}
	item, err := r.item(ctx, o, ref)
	item.IsPackage = true
	return item, images, err
}

// defaultImageRegistry is the registry of an image that names none, as with container engines.
const defaultImageRegistry = "docker.io"

// runtimeImages returns the images that the runtime of a package needs beside the package.
func runtimeImages(meta xpkg.Meta, ref oci.Reference) ([]oci.Reference, error) {
	var out []oci.Reference
	add := func(image, registry string) error {
		if image == "" {
			return nil
		}
		found, err := runtimeImage(image, registry)
		out = append(out, found)
		return err
	}
	defaults, err := runtimedefaults.Parse(meta.Annotations)
	if err != nil {
		return nil, err
	}
	registry := defaultImageRegistry
	if defaults != nil && defaults.ImageInPackageRegistry {
		registry = ref.Registry
	}
	if err := add(meta.ControllerImage, registry); err != nil {
		return nil, err
	}
	t, err := firstgen.ParseTemplating(meta.Annotations)
	if err != nil || t == nil {
		return out, err
	}
	// The images that render templates are in the registry of the package unless they name another one.
	return out, errors.Join(add(t.Source.Image, ref.Registry), add(t.Engine.ControllerImage, ref.Registry))
}

// runtimeImage returns the reference of an image, with the tag latest if it has none.
func runtimeImage(image, registry string) (oci.Reference, error) {
	ref, err := oci.ParseReference(image, oci.ParseOptions{DefaultRegistry: registry, AllowUntagged: true})
	if err == nil && ref.Tag == "" && ref.Digest.IsZero() {
		ref = ref.WithTag("latest")
	}
	return ref, err
}
