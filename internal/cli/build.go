package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// ErrWriteFile is the failure of a result that cannot be written.
var ErrWriteFile = failure.Register(failure.Code{
	Name: "WriteFile", Class: failure.Unavailable,
	Cause: "The file that the command makes cannot be written.",
	Fix:   "Check that the folder exists, that it can be written to, and that the disk has space.",
})

type buildCmd struct {
	Kind         string   `arg:"" optional:"" enum:",provider,configuration,function" default:"" help:"Kind that the package must have: provider, configuration or function."`
	PackageRoot  string   `short:"f" default:"." placeholder:"DIR" help:"Folder of the package: the one with crossplane.yaml. Default is this folder."`
	PackageFile  string   `short:"o" placeholder:"FILE" help:"File to write. Default is NAME-DIGEST.xpkg in the folder of the package."`
	ExamplesRoot string   `short:"e" placeholder:"DIR" help:"Folder of examples that go with the package. Default is examples in the folder of the package, or else beside it."`
	Ignore       []string `placeholder:"GLOB" help:"Files to leave out, as patterns relative to the folder of the package."`
}

// Run builds a package and says what it is.
func (c *buildCmd) Run(env *Env) error {
	folder, err := c.read()
	if err != nil {
		return err
	}
	pkg, err := folder.Package(format.ReadOptions{Expect: format.Kind(kindOf(c.Kind)), Policy: format.PolicyBuild()})
	if err != nil {
		return err
	}
	for _, f := range pkg.Findings {
		fmt.Fprintln(env.Stderr, safe(f.String()))
	}
	image, err := oci.BuildImage(env.Context, oci.ImageInput{PackageYAML: folder.Stream(), Examples: folder.Examples()})
	if err != nil {
		return err
	}
	file := c.PackageFile
	if file == "" {
		file = filepath.Join(c.PackageRoot, oci.FriendlyID(pkg.Meta.Name, image.Digest().Hex())+".xpkg")
	}
	if err := writeArchive(env.Context, file, image); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: %s %s with %s, %s\n", safe(file), pkg.Meta.Kind, safe(pkg.Meta.Name), plural(len(pkg.Objects), "object"), image.Digest())
	return err
}

// read finds the files of the package and of its examples. Neither folder is
// left by following a link.
func (c *buildCmd) read() (*format.Folder, error) {
	root, err := os.OpenRoot(c.PackageRoot)
	if err != nil {
		return nil, format.ErrFolderNotFound.New(err, "cannot read the folder of the package")
	}
	defer root.Close()
	opts := format.FolderOptions{Ignore: c.Ignore}
	examples, err := c.examples()
	if err != nil {
		return nil, err
	}
	if opts.ExamplesRoot, err = within(c.PackageRoot, examples); err != nil {
		return nil, err
	}
	if opts.ExamplesRoot == "" && examples != "" {
		folder, err := os.OpenRoot(examples)
		if err != nil {
			return nil, format.ErrFolderNotFound.New(err, "cannot read the folder of the examples")
		}
		defer folder.Close()
		opts.Examples = folder.FS()
	}
	return format.ReadFolder(root.FS(), opts)
}

// examples is the folder of the examples, or nothing when there is none. One that
// was named must exist.
func (c *buildCmd) examples() (string, error) {
	if c.ExamplesRoot != "" {
		return c.ExamplesRoot, nil
	}
	root, err := filepath.Abs(c.PackageRoot)
	if err != nil {
		return "", err
	}
	for _, dir := range []string{filepath.Join(root, "examples"), filepath.Join(filepath.Dir(root), "examples")} {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && dir != root {
			return dir, nil
		}
	}
	return "", nil
}

// within gives the path of folder relative to root, with slashes, or nothing when
// it lies elsewhere.
func within(root, folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	folder, err = filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, folder)
	if err != nil || rel == "." || !fs.ValidPath(filepath.ToSlash(rel)) {
		return "", nil
	}
	return filepath.ToSlash(rel), nil
}

// writeArchive writes a .xpkg file whole or not at all.
func writeArchive(ctx context.Context, file string, a oci.Artifact) error {
	pending, err := renameio.NewPendingFile(file, renameio.WithPermissions(0o644), renameio.WithExistingPermissions())
	if err != nil {
		return ErrWriteFile.New(err, "cannot write %s", file)
	}
	defer pending.Cleanup() //nolint:errcheck // it is of no use once the file is in place
	if err := oci.WriteArchive(ctx, pending, a, oci.ArchiveOptions{}, oci.Limits{}); err != nil {
		return err
	}
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return ErrWriteFile.New(err, "cannot write %s", file)
	}
	return nil
}

// onePackageFile is the only .xpkg file of a folder.
func onePackageFile(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.xpkg"))
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", oci.ErrArchiveNotFound.New(nil, "there is no .xpkg file in this folder").WithDo("Build one with `xpkg build`, or name one with -f.")
	case 1:
		return found[0], nil
	}
	return "", ErrUsage.New(nil, "there are %d .xpkg files in this folder: %s", len(found), strings.Join(found, ", ")).WithDo("Say which one with -f.")
}
