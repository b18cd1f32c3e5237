package author

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// firstFolder is a folder with a package of the first generation.
type firstFolder struct {
	dir string
	at  firstgen.Location
}

// findFirst returns the package of the first generation in a folder, and false if there is none or the folder is the
// source of a package of today. It fails if the place of the package is a link out of the folder.
func findFirst(dir string) (firstFolder, bool, error) {
	root, err := fileutil.OpenFolder(dir)
	if err != nil {
		return firstFolder{}, false, nil //nolint:nilerr // The caller reads the folder, and reports why it cannot.
	}
	defer root.Close()
	if location.IsSource(dir) {
		return firstFolder{}, false, nil
	}
	at, err := firstgen.Find(root.FS())
	if errors.Is(err, firstgen.ErrNoRegistryFolder) {
		return firstFolder{}, false, checkInside(root.FS(), dir)
	}
	return firstFolder{dir, at}, err == nil, err
}

// appFile is the file with the metadata of a package of the first generation. It is no object of Kubernetes.
const appFile = "app.yaml"

var anObject = lazyregexp.New(`(?m)^["']?kind["']?:`)

// checkInside fails for a folder that is itself the content of a package of the first generation, and names the folder
// above it from which the package is read.
func checkInside(fsys fs.FS, dir string) error {
	text, err := fs.ReadFile(fsys, appFile)
	if err != nil || anObject().Match(text) {
		return nil //nolint:nilerr // The caller reads the folder, and reports why it cannot.
	}
	inside := firstgen.ErrNoRegistryFolder.New(
		nil, "%s contains the files of a package of the first generation, which is read from the folder above %s", dir,
		firstgen.Folder,
	)
	here, _ := os.Stat(dir)
	for above, n := filepath.Join(dir, ".."), 0; n < 3; above, n = filepath.Join(above, ".."), n+1 {
		f, ok, err := findFirst(above)
		if err != nil || !ok {
			continue
		}
		if there, err := os.Stat(filepath.Join(above, filepath.FromSlash(f.at.Root))); err == nil &&
			os.SameFile(here, there) {
			return inside.WithDo("Name the folder %s instead.", above)
		}
	}
	return inside.WithDo(
		"Move the files into a folder with the name %s, and name the folder that contains it.", firstgen.Folder,
	)
}

// use calls read with the file system of the folder.
func (f firstFolder) use(read func(fs.FS) error) error {
	root, err := fileutil.OpenFolder(f.dir)
	if err != nil {
		return xpkg.ErrFolderNotFound.New(err, "cannot read the folder of the package")
	}
	defer root.Close()
	return read(root.FS())
}

// files returns the files of the package as an image contains them.
func (f firstFolder) files(limits xpkg.Limits) (files map[string][]byte, err error) {
	err = f.use(func(fsys fs.FS) error {
		files, err = firstgen.Files(fsys, f.at, firstgen.Options{Limits: limits})
		return err
	})
	return files, err
}

// read reads the package.
func (f firstFolder) read(limits xpkg.Limits) (pkg *firstgen.Package, err error) {
	err = f.use(func(fsys fs.FS) error {
		pkg, err = firstgen.ReadLocation(fsys, f.at, firstgen.Options{Limits: limits})
		return err
	})
	return pkg, err
}

// place puts the folder before the paths of findings.
func (f firstFolder) place(findings []xpkg.Finding) []xpkg.Finding {
	return firstgen.PlaceFindings(filepath.ToSlash(filepath.Join(f.dir, f.at.Root)), findings)
}

// lintFirst returns the findings of a package of the first generation, and what an API server would reject of its CRDs.
// The error is the error of reading it.
func lintFirst(pkg *firstgen.Package, err error, strict bool, limits xpkg.Limits) ([]xpkg.Finding, error) {
	policy := authorPolicy(strict)
	if found := xpkg.Findings(err); found != nil {
		return strictly(found, strict), nil
	}
	if err != nil {
		return nil, err
	}
	found := pkg.Findings
	c, err := firstgen.Convert(pkg, firstgen.ConvertOptions{})
	if refused := xpkg.Findings(err); refused != nil {
		return strictly(append(found, refused...), strict), nil
	}
	if err != nil {
		return nil, err
	}
	placer := firstgen.NewPlacer(pkg, c)
	found = append(found, placer.IgnoredSettings()...)
	for _, f := range check.Stream(
		c.Stream(), xpkg.ReadOptions{Policy: policy, Limits: limits}, everyCheck(policy, limits),
	) {
		if f, ok := placer.Place(f); ok {
			found = append(found, f)
		}
	}
	return strictly(found, strict), nil
}

// strictly returns findings with warnings as errors, if strict is set.
func strictly(found []xpkg.Finding, strict bool) []xpkg.Finding {
	found = slices.Clone(found)
	for i := range found {
		if strict {
			found[i].Severity = xpkg.Error
		}
	}
	return found
}

// lintFirstFolder checks a folder with a package of the first generation.
func (c *LintCmd) lintFirstFolder(f firstFolder) ([]xpkg.Finding, error) {
	pkg, err := f.read(c.StreamLimits())
	found, err := lintFirst(pkg, err, c.Strict, c.StreamLimits())
	return f.place(found), err
}

// buildFirst builds the image of a package of the first generation: its files in the folder .registry, above the
// runtime image, if there is one.
func (c *BuildCmd) buildFirst(env *terminal.Env, f firstFolder, base *image.Image) error {
	pkg, err := f.read(c.StreamLimits())
	found, err := lintFirst(pkg, err, c.Strict, c.StreamLimits())
	if err != nil {
		return err
	}
	found = f.place(found)
	if err := xpkg.Failed(found); err != nil {
		return err
	}
	WriteFindings(env.Stderr, found)
	files, err := f.files(c.StreamLimits())
	if err != nil {
		return err
	}
	var all []image.File
	for _, p := range slices.Sorted(maps.Keys(files)) {
		all = append(all, image.File{Path: p, Data: files[p]})
	}
	platform, err := location.ParsePlatform(c.Platform)
	if err != nil {
		return err
	}
	in := image.Input{Registry: all, Base: base, Platform: platform}
	if err := c.set(&in); err != nil {
		return err
	}
	built, err := image.Build(env.Context, in)
	if err != nil {
		return err
	}
	conversion, err := firstgen.Convert(pkg, firstgen.ConvertOptions{})
	if err != nil {
		return err
	}
	read, err := xpkg.Read(conversion.Stream(), xpkg.ReadOptions{Limits: c.StreamLimits()})
	if err != nil {
		return err
	}
	return c.write(env, read, built)
}
