package location

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
)

// FolderFlags selects the files of a folder that are part of a package.
type FolderFlags struct {
	ExamplesRoot string   `short:"e" placeholder:"DIR" help:"Folder of the examples of the package. Default is examples in the folder of the package or beside it, and in a Project the folder that its file names."`
	Ignore       []string `placeholder:"GLOB" help:"Files to ignore, as patterns relative to the folder of the package."`
}

// metadataFile is the file with the metadata of a package in its folder.
const metadataFile = "crossplane.yaml"

// Metadata returns the name of the file with the metadata of the package in a folder: that of a Project, if there is
// one. It returns "" for a folder that is no source of a package.
func Metadata(dir string) string {
	root, err := fileutil.OpenFolder(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	if file := project.Find(root.FS(), nil); file != "" {
		return file
	}
	if _, err := root.Lstat(metadataFile); err != nil {
		return ""
	}
	return metadataFile
}

// Read reads the files of the package in root and of its examples. It follows no link out of
// either folder, and ends at once when the command is interrupted.
func (f FolderFlags) Read(ctx context.Context, dir string, limits xpkg.Limits) (*xpkg.Folder, error) {
	return fileutil.Await(ctx, func() (*xpkg.Folder, error) { return f.read(dir, limits) })
}

func (f FolderFlags) read(dir string, limits xpkg.Limits) (*xpkg.Folder, error) {
	root, err := fileutil.OpenFolder(dir)
	if err != nil {
		return nil, xpkg.ErrFolderNotFound.New(err, "cannot read the folder of the package")
	}
	defer root.Close()
	opts := xpkg.FolderOptions{Ignore: f.Ignore, Limits: limits}
	examples, err := f.examples(dir)
	if err != nil {
		return nil, err
	}
	if file := project.Find(root.FS(), f.Ignore); file != "" {
		var p *project.Project
		if p, opts.Layout, err = project.Open(root.FS(), file, limits); err != nil {
			return nil, err
		}
		if p != nil && f.ExamplesRoot == "" {
			examples = filepath.Join(dir, filepath.FromSlash(p.Paths.Examples))
		}
	}
	if opts.ExamplesRoot, err = within(dir, examples); err != nil {
		return nil, err
	}
	if opts.ExamplesRoot == "" && examples != "" {
		folder, err := fileutil.OpenFolder(examples)
		if err != nil {
			return nil, xpkg.ErrFolderNotFound.New(err, "cannot read the folder of the examples")
		}
		defer folder.Close()
		opts.Examples = folder.FS()
	}
	return xpkg.ReadFolder(root.FS(), opts)
}

// Project returns the Project in a folder with its functions, and nil if the folder is none or cannot be read.
func (f FolderFlags) Project(dir string, limits xpkg.Limits) (*project.Project, []project.Function, error) {
	root, err := fileutil.OpenFolder(dir)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // Whatever reads the package reports it.
	}
	defer root.Close()
	file := project.Find(root.FS(), f.Ignore)
	if file == "" {
		return nil, nil, nil
	}
	p, _, err := project.Open(root.FS(), file, limits)
	if err != nil || p == nil {
		return nil, nil, err
	}
	functions, err := p.Functions(root.FS())
	return p, functions, err
}

// ReadMeta reads the metadata of the package in a folder.
func ReadMeta(ctx context.Context, dir string) (xpkg.Meta, error) {
	folder, err := FolderFlags{}.Read(ctx, dir, xpkg.Limits{})
	if err != nil {
		return xpkg.Meta{}, err
	}
	meta, err := folder.Meta(xpkg.ReadOptions{})
	FolderFlags{}.Place(dir, xpkg.Findings(err))
	return meta, err
}

// examples returns the folder of the examples, or "" if there is none. A folder that the user
// named must exist.
func (f FolderFlags) examples(dir string) (string, error) {
	if f.ExamplesRoot != "" {
		return f.ExamplesRoot, nil
	}
	root, err := filepath.Abs(dir)
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

// Place puts the folder before the paths of findings, so that editors and code
// hosts find the files.
func (f FolderFlags) Place(dir string, findings []xpkg.Finding) []xpkg.Finding {
	examples, err := f.examples(dir)
	if err != nil {
		examples = ""
	}
	for i := range findings {
		for _, file := range []*string{&findings[i].File, &findings[i].Other.File} {
			if *file == "" {
				continue
			}
			in := dir
			if _, err := os.Lstat(filepath.Join(dir, *file)); err != nil && examples != "" {
				in = examples
			}
			*file = path.Clean(filepath.ToSlash(filepath.Join(relative(in), *file)))
		}
	}
	return findings
}

// relative returns a folder relative to the working folder, if it is inside of it.
func relative(dir string) string {
	here, err := os.Getwd()
	if err != nil || !filepath.IsAbs(dir) {
		return dir
	}
	if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return dir
}

// within returns the path of folder relative to root, with slashes, or "" if it is not below root.
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
