// Package author contains the commands for package authors: build, lint, push and append.
package author

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// TemplatingFlag selects the image of function-go-templating.
type TemplatingFlag struct {
	GoTemplatingImage string `placeholder:"REFERENCE" default:"xpkg.crossplane.io/crossplane-contrib/function-go-templating:v0.12.0" help:"Image of function-go-templating, which runs the functions of a Project that are written in Go templates. Name a digest for equal builds at any time. Default is ${default}."`
}

// BuildCmd implements `xpkg build`.
type BuildCmd struct {
	First       string `arg:"" optional:"" name:"folder-or-kind" complete:"kind" help:"Folder of the package, as with -f, or the expected kind of the package: provider, configuration or function."`
	PackageRoot string `short:"f" placeholder:"DIR" help:"Folder of the package, which contains crossplane.yaml, the file of a Project or, for a package of the first generation, the folder .registry. Default is this folder."`
	PackageFile string `short:"o" placeholder:"FILE" help:"File to write, or - for standard output. Default is NAME-DIGEST.xpkg in the folder of the package."`
	Repository  string `placeholder:"REPOSITORY" help:"Repository of the Project, in place of spec.repository. The repositories of its functions start with it."`
	Strict      bool   `help:"Treat warnings as errors."`

	TemplatingFlag
	createdFlag
	runtimeFlags
	location.FolderFlags
	location.TransferFlags
}

// Run builds a package and prints its digest.
func (c *BuildCmd) Run(env *terminal.Env) (err error) {
	kind, err := c.firstArgument()
	if err != nil {
		return err
	}
	f, ok, err := findFirst(c.PackageRoot)
	if err != nil {
		return err
	}
	if ok {
		base, done, err := c.runtime(env, c.TransferFlags)
		if err != nil {
			return err
		}
		return errors.Join(c.buildFirst(env, f, base), done())
	}
	folder, pkg, err := c.read(env, kind)
	if err != nil {
		return err
	}
	if err := c.checkOutput(folder); err != nil {
		return err
	}
	parts, err := c.openProject()
	if err != nil {
		return err
	}
	if parts != nil {
		defer func() { err = errors.Join(err, parts.done()) }()
		if err := parts.build(env, c); err != nil {
			return err
		}
		folder.Documents[0] = parts.WithFunctions(parts.dependencies())
	}
	base, done, err := c.runtime(env, c.TransferFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	platform, err := location.ParsePlatform(c.Platform)
	if err != nil {
		return err
	}
	built, err := c.image(env, folder, platform, func(in *image.Input) { in.Base = base })
	if err != nil {
		return err
	}
	if parts != nil {
		if err := parts.write(env, c); err != nil {
			return err
		}
	}
	return c.write(env, pkg, built)
}

// checkOutput refuses to replace a file from which the package is built.
func (c *BuildCmd) checkOutput(folder *xpkg.Folder) error {
	is, err := os.Stat(c.PackageFile)
	if err != nil || c.PackageFile == "" {
		return nil
	}
	for _, d := range folder.Documents {
		from, err := os.Stat(filepath.Join(c.PackageRoot, d.File))
		if err == nil && os.SameFile(is, from) {
			return terminal.ErrUsage.New(nil, "%s is a file of the package", c.PackageFile).WithDo("Name another file with -o.")
		}
	}
	return nil
}

// read reads and checks the package.
func (c *BuildCmd) read(env *terminal.Env, kind xpkg.Kind) (folder *xpkg.Folder, pkg *xpkg.Package, err error) {
	p := terminal.StartTask(env.Stderr, "checking the package in %s", c.PackageRoot)
	defer p.End()
	pkg, err = fileutil.Await(env.Context, func() (_ *xpkg.Package, err error) {
		if folder, err = c.Read(env.Context, c.PackageRoot, c.StreamLimits()); err != nil {
			return nil, err
		}
		return c.check(env.Context, p, folder, kind)
	})
	return folder, pkg, err
}

// image builds the image of a package with a runtime, which the function adds.
func (c *BuildCmd) image(
	env *terminal.Env, folder *xpkg.Folder, platform oci.Platform, runtime func(*image.Input),
) (*image.Image, error) {
	in := image.Input{Examples: folder.Examples(), Platform: platform}
	index, err := fileutil.Await(env.Context, func() (image.ExtraLayer, error) {
		in.PackageYAML = folder.Stream()
		return indexlayer.Build(in.PackageYAML, c.StreamLimits())
	})
	if err != nil {
		return nil, err
	}
	in.Extra = []image.ExtraLayer{index}
	if err := c.set(&in); err != nil {
		return nil, err
	}
	runtime(&in)
	return image.Build(env.Context, in)
}

// firstArgument returns the expected kind of the package, and sets the folder of the package. A word that is a kind is
// not a folder.
func (c *BuildCmd) firstArgument() (xpkg.Kind, error) {
	kind := inventory.KindNamed(c.First)
	switch {
	case kind != "" || c.First == "":
	case c.PackageRoot != "":
		return "", terminal.ErrUsage.New(nil, "%s is not provider, configuration or function", c.First).
			WithDo("Name the folder of the package once, with -f or without.")
	default:
		c.PackageRoot = c.First
	}
	c.PackageRoot = cmp.Or(c.PackageRoot, ".")
	return xpkg.Kind(kind), nil
}

// check runs every check and prints warnings. It returns one error for a refused package; lint lists
// all findings.
func (c *BuildCmd) check(
	ctx context.Context, w io.Writer, folder *xpkg.Folder, kind xpkg.Kind,
) (*xpkg.Package, error) {
	policy := authorPolicy(c.Strict)
	read := xpkg.ReadOptions{Expect: kind, Policy: policy, Limits: c.StreamLimits()}
	found := check.Folder(folder, read, everyCheck(policy, c.StreamLimits()))
	inspected, _ := folder.Inspect(read)
	embedded, err := EmbeddedFunctions(c.FolderFlags, c.PackageRoot, c.StreamLimits())
	if err != nil {
		return nil, err
	}
	compositions, err := CompositionFindings(ctx, inspected, embedded, c.Strict)
	if err != nil {
		return nil, err
	}
	findings := c.Place(c.PackageRoot, append(found, compositions...))
	if err := xpkg.Failed(findings); err != nil {
		f := errcode.From(err)
		if len(findings) > 1 {
			f = f.Also("`xpkg lint %s` lists all problems.", wording.ShellWord(c.PackageRoot))
		}
		return nil, f
	}
	WriteFindings(w, findings)
	return folder.Package(read)
}

func (c *BuildCmd) write(env *terminal.Env, pkg *xpkg.Package, image *image.Image) error {
	file := c.PackageFile
	if file == "" {
		file = filepath.Join(c.PackageRoot, oci.FriendlyID(pkg.Meta.Name, image.Digest().Hex())+".xpkg")
	}
	if _, err := env.WriteArchive(env.Context, file, location.ArtifactOnly{Artifact: image}, c.ImageLimits()); err != nil {
		return err
	}
	if env.Verbose {
		if err := tellLayers(env, image); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(
		env.Messages(file), "%s: %s %s with %s, %s\n", terminal.SafeLine(file), pkg.Meta.Kind,
		terminal.SafeLine(pkg.Meta.Name), wording.Count(len(pkg.Objects), "object"), image.Digest(),
	)
	return err
}

func tellLayers(env *terminal.Env, image *image.Image) error {
	m, err := image.Manifest()
	if err != nil {
		return err
	}
	for _, l := range m.Layers {
		fmt.Fprintf(
			env.Stderr, "layer %s, %s %s\n", l.Digest, terminal.Size(l.Size), terminal.Safe(l.Annotations[oci.AnnotationKey]),
		)
	}
	return nil
}
