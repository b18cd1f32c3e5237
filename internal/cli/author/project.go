package author

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/author/goprogram"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
)

// ErrFunctionNotBuildable is the code for functions of a Project that are written in a language without a compiler in
// xpkg.
var ErrFunctionNotBuildable = errcode.Code{
	Name: "FunctionNotBuildable", Class: errcode.Unsupported,
	Cause: "A function of the Project is written neither in Go nor in Go templates. xpkg has no compilers for KCL, Python and TypeScript, which other tools run in images of their own. A folder with templates contains only files that end in .gotmpl or .tmpl.",
	Fix:   "Build a runtime image of the function with another tool. Then list it in spec.functions with the source Tarball (dev.crossplane.io), or publish it as a package with --embed-runtime-image, make that package a dependency, and move the folder out of the functions of the Project.",
}

// projectBuild builds the functions of a Project.
type projectBuild struct {
	*project.Project
	functions []project.Function
	built     []builtFunction
	// templating is the image of function-go-templating, or nil before its first use.
	templating *pushedPackage
	done       func() error
}

// builtFunction is the package of a function.
type builtFunction struct {
	name, repository string
	index            *image.Index
}

// openProject returns the Project in the folder of the package, and nil if the folder is none or has no functions. It
// fails if a function cannot be built.
func (c *BuildCmd) openProject() (*projectBuild, error) {
	p, functions, err := c.Project(c.PackageRoot, c.StreamLimits())
	if err != nil {
		return nil, err
	}
	if p == nil && c.Repository != "" {
		return nil, terminal.ErrUsage.New(nil, "--repository is for Projects, and %s is none", c.PackageRoot).
			WithDo("Omit the flag, and name the repository when you push the package.")
	}
	if len(functions) == 0 {
		return nil, nil //nolint:nilnil // The build of a Configuration needs nothing else.
	}
	if c.Repository != "" {
		p.Repository = c.Repository
	}
	if p.Repository == "" {
		return nil, xpkg.ErrMissingRepository.New(nil, "the functions of the Project have no repositories")
	}
	if fileutil.IsStdout(c.PackageFile) {
		return nil, terminal.ErrUsage.New(nil, "the Project is several packages, which standard output cannot hold").
			WithDo("Name a file with -o; the packages of the functions are written beside it.")
	}
	for _, f := range functions {
		if _, err := functionRepository(p, f.Name); err != nil {
			return nil, err
		}
	}
	if err := xpkg.Failed(unbuildable(c.PackageRoot, functions)); err != nil {
		return nil, err
	}
	return &projectBuild{Project: p, functions: functions, done: func() error { return nil }}, nil
}

// functionRepository returns the repository of the package of a function.
func functionRepository(p *project.Project, name string) (string, error) {
	ref, err := oci.ParseReference(p.FunctionRepository(name), oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return "", err
	}
	return ref.Name(), nil
}

// build builds the packages of the functions. Their layers are read until close is called.
func (b *projectBuild) build(env *terminal.Env, c *BuildCmd) error {
	platforms, err := b.platforms(c.Platform)
	if err != nil {
		return err
	}
	for _, f := range b.functions {
		images, err := b.images(env, c, f, platforms)
		if err != nil {
			return err
		}
		index, err := image.NewIndex(images...)
		if err != nil {
			return err
		}
		repository, err := functionRepository(b.Project, f.Name)
		if err != nil {
			return err
		}
		b.built = append(b.built, builtFunction{name: f.Name, repository: repository, index: index})
	}
	return nil
}

// images builds the images of a function.
func (b *projectBuild) images(
	env *terminal.Env, c *BuildCmd, f project.Function, platforms []oci.Platform,
) ([]*image.Image, error) {
	folder, err := b.folder(c, f)
	if err != nil {
		return nil, err
	}
	var out []*image.Image
	for _, platform := range platforms {
		runtime, err := b.runtime(env, c, f, platform)
		if err != nil {
			return nil, err
		}
		i, err := c.image(env, folder, platform, runtime)
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}

// platforms returns the platforms of the functions: that of the flag, or those of the Project.
func (b *projectBuild) platforms(flag string) ([]oci.Platform, error) {
	if flag != "" {
		platform, err := oci.ParsePlatform(flag)
		return []oci.Platform{platform}, err
	}
	var out []oci.Platform
	for _, architecture := range b.Architectures {
		platform, err := oci.ParsePlatform("linux/" + architecture)
		if err != nil {
			return nil, err
		}
		out = append(out, platform)
	}
	return out, nil
}

// folder returns the content of the package of a function: its metadata, and the examples in its folder.
func (b *projectBuild) folder(c *BuildCmd, f project.Function) (*xpkg.Folder, error) {
	dir := filepath.Join(c.PackageRoot, filepath.FromSlash(f.Folder))
	root, err := fileutil.OpenFolder(dir)
	if err != nil {
		return nil, xpkg.ErrFolderNotFound.New(err, "cannot read the folder of the function %s", f.Name)
	}
	defer root.Close()
	opts := xpkg.FolderOptions{Limits: c.StreamLimits(), Layout: &xpkg.Layout{Meta: b.FunctionMeta(f.Name)}}
	if f.Folder != "" {
		opts.ExamplesRoot = "examples"
	}
	folder, err := xpkg.ReadFolder(root.FS(), opts)
	if err != nil {
		return nil, err
	}
	_, err = folder.Package(xpkg.ReadOptions{Policy: authorPolicy(c.Strict), Limits: c.StreamLimits()})
	c.Place(c.PackageRoot, xpkg.Findings(err))
	return folder, err
}

// runtime returns what adds the runtime of a function to its image: its program, its templates, or the image that the
// Project names.
func (b *projectBuild) runtime(
	env *terminal.Env, c *BuildCmd, f project.Function, platform oci.Platform,
) (func(*image.Input), error) {
	if f.Language == project.GoTemplates {
		return b.goTemplates(env, c, f, platform)
	}
	base, err := b.base(env, c, f, platform)
	return func(in *image.Input) { in.Base = base }, err
}

// base returns the runtime image of a function: its program, or the image that the Project names.
func (b *projectBuild) base(
	env *terminal.Env, c *BuildCmd, f project.Function, platform oci.Platform,
) (*image.Image, error) {
	if f.Folder != "" {
		task := terminal.StartTask(env.Stderr, "building the function %s for %s", f.Name, platform)
		defer task.End()
		dir := filepath.Join(c.PackageRoot, filepath.FromSlash(f.Folder))
		return goprogram.Program{Folder: dir, Platform: platform, Messages: task}.Image(env.Context)
	}
	file := filepath.Join(c.PackageRoot, filepath.FromSlash(f.Tarball)) + "-" + platform.Architecture + ".tar"
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(file + ".gz"); err != nil {
			return nil, archive.ErrArchiveNotFound.New(nil, "the runtime image %s of the function %s does not exist", file, f.Name).
				WithDo("Build the image for %s with another tool, and save it in this file.", platform)
		}
		file += ".gz"
	}
	a, err := openTarball(env, file, c)
	if err != nil {
		return nil, err
	}
	before := b.done
	b.done = func() error { return errors.Join(before(), a.Close()) }
	return image.Load(env.Context, a, platform, c.ImageLimits())
}

// openTarball opens an image in a file, which gzip may have compressed.
func openTarball(env *terminal.Env, file string, c *BuildCmd) (_ *archive.Archive, err error) {
	if !strings.HasSuffix(file, ".gz") {
		return location.OpenArchive(env, file, c.ArchiveLimit(), c.ImageLimits())
	}
	compressed, err := env.OpenInput(file)
	if err != nil {
		return nil, archive.ErrArchiveNotFound.New(err, "cannot open %s", file)
	}
	defer terminal.Close(&err, compressed)
	plain, err := gzip.NewReader(compressed)
	if err != nil {
		return nil, archive.ErrNotAnArchive.New(err, "cannot read %s", file)
	}
	return archive.Read(env.Context, plain, "", c.ArchiveLimit(), c.ImageLimits())
}

// dependencies returns the dependencies of the Configuration on the functions.
func (b *projectBuild) dependencies() []dependency.Dependency {
	var out []dependency.Dependency
	for _, f := range b.built {
		out = append(out, dependency.Dependency{
			APIVersion: "pkg.crossplane.io/v1", Kind: string(xpkg.Function), Package: f.repository,
			Constraint: f.index.Digest().String(),
		})
	}
	return out
}

// write writes the packages of the functions: beside the file of the Configuration, or into the folder of the Project.
func (b *projectBuild) write(env *terminal.Env, c *BuildCmd) error {
	for _, f := range b.built {
		name := b.Name + "-" + f.name
		file := filepath.Join(c.PackageRoot, oci.FriendlyID(name, f.index.Digest().Hex())+".xpkg")
		if c.PackageFile != "" {
			file = strings.TrimSuffix(c.PackageFile, ".xpkg") + "_" + f.name + ".xpkg"
		}
		if _, err := env.WriteArchive(
			env.Context, file, location.ArtifactOnly{Artifact: f.index}, c.ImageLimits(),
		); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(
			env.Messages(file), "%s: Function %s of %s, %s\n", terminal.SafeLine(file), terminal.SafeLine(name),
			terminal.SafeLine(f.repository), f.index.Digest(),
		); err != nil {
			return err
		}
	}
	return nil
}
