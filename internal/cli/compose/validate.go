package compose

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ErrNothingToValidate is the code for a validation without resources.
var ErrNothingToValidate = errcode.Code{
	Name: "NothingToValidate", Class: errcode.Invalid,
	Cause: "There is no resource to validate.",
	Fix:   "Name files or folders with resources, such as `xpkg validate examples`, or check a package with `xpkg check`.",
}

// ValidateCmd implements `xpkg validate`.
type ValidateCmd struct {
	Resources         []string `arg:"" optional:"" name:"resources" help:"Files with resources in YAML or JSON, folders with files of YAML, or - for standard input. CRDs and XRDs among them define kinds too. Compositions in the first of several are not checked: it is the extensions of the Crossplane CLI."`
	AllowUnknownKinds bool     `help:"Report resources of unknown kinds, and unknown functions of Compositions, as warnings."`
	author.ReportFlags
	dependencies.ContentsFlags
	location.FolderFlags
}

// Run validates resources without an API server, and fails if one is not valid.
func (c *ValidateCmd) Run(env *terminal.Env) error {
	if err := c.CheckFormat(); err != nil {
		return err
	}
	docs, err := c.documents(env)
	if err != nil {
		return err
	}
	v, err := validation.New()
	if err != nil {
		return err
	}
	v.AllowUnknown = c.AllowUnknownKinds
	if err := c.addSchemas(env, v, docs); err != nil {
		return err
	}
	resources, err := fileutil.Await(env.Context, func() ([]validation.Resource, error) {
		resources := v.Read(docs)
		v.AddInstalledFunctions(resources)
		for _, r := range resources {
			v.Validate(env.Context, r)
		}
		xpkg.SortFindings(v.Findings)
		return resources, v.Schemas.Err()
	})
	if err != nil {
		return err
	}
	if len(resources) == 0 && len(v.Findings) == 0 {
		return ErrNothingToValidate.New(nil, "%s: no resource was found", strings.Join(c.Resources, ", "))
	}
	if err := c.WriteReport(env.Stdout, v.Findings); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "%s\n", terminal.Safe(v.Summary(len(resources))))
	if _, failed := author.CountFindings(v.Findings); failed {
		return terminal.ExitCode(errcode.Invalid.Exit)
	}
	return nil
}

// packages returns the packages of the flags, or this folder if it is a package and there is no lock file.
func (c *ValidateCmd) packages() []string {
	if len(c.Package) == 0 && location.IsSource(".") {
		return []string{"."}
	}
	return c.Package
}

// addSchemas adds the schemas of the packages and of their dependencies.
func (c *ValidateCmd) addSchemas(env *terminal.Env, v *validation.Validation, docs []xpkg.Document) error {
	packages := c.packages()
	for _, p := range packages {
		if !location.IsPath(p) || location.IsPackageFile(p) {
			continue
		}
		folder, err := c.Read(env.Context, p, c.StreamLimits())
		if err != nil {
			return err
		}
		if err := omitResources(folder, p, docs); err != nil {
			return err
		}
		pkg, err := folder.Package(xpkg.ReadOptions{Limits: c.StreamLimits(), Policy: xpkg.PolicyBuild()})
		if err != nil {
			return err
		}
		v.AddPackage(pkg, p)
		if pkg.Meta.Kind == xpkg.Function {
			v.AddFunction(validation.DefinesInputs(pkg), pkg.Meta.Name)
		}
		embedded, err := author.EmbeddedFunctions(c.FolderFlags, p, c.StreamLimits())
		if err != nil {
			return err
		}
		author.AddEmbedded(v, embedded)
	}
	contents, err := c.Contents(env, packages)
	if err != nil {
		return err
	}
	addContents(v, contents)
	return nil
}

// addContents adds the kinds and functions of packages.
func addContents(v *validation.Validation, contents []dependencies.Content) {
	for _, p := range contents {
		v.AddPackage(p.Package, p.Reference)
		if p.Meta.Kind == xpkg.Function {
			others := validation.FunctionNames(p.Meta.Name, p.Locked.Repository)
			v.AddFunction(validation.DefinesInputs(p.Package), cmp.Or(p.Name, p.Meta.Name), others...)
		}
	}
}

// omitResources removes the resources that are checked from the folder of a package: they are resources for its kinds,
// which the package need not allow as its content. The definitions among them define their kinds in any case.
func omitResources(folder *xpkg.Folder, dir string, docs []xpkg.Document) error {
	checked := map[string]bool{}
	for _, d := range docs {
		path, err := filepath.Abs(filepath.FromSlash(d.File))
		if err != nil {
			return err
		}
		checked[path] = true
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	folder.Documents = slices.DeleteFunc(folder.Documents, func(d xpkg.Document) bool {
		return checked[filepath.Join(root, filepath.FromSlash(d.File))] && !isPackageMetadata(d)
	})
	return nil
}

// isPackageMetadata reports whether a document is the metadata of a package.
func isPackageMetadata(d xpkg.Document) bool {
	var of struct {
		APIVersion string `json:"apiVersion"`
	}
	return d.Decode(&of) == nil && strings.HasPrefix(of.APIVersion, "meta.pkg.")
}

// documents reads the documents of all arguments.
func (c *ValidateCmd) documents(env *terminal.Env) ([]xpkg.Document, error) {
	if len(c.Resources) == 0 {
		return nil, ErrNothingToValidate.New(nil, "no resource is given")
	}
	var docs []xpkg.Document
	for i, name := range c.Resources {
		files, err := resourceFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			raw, err := env.ReadInput(file)
			if err != nil {
				return nil, location.ErrReadFile.New(err, "cannot read %s", file)
			}
			more, err := fileutil.Await(env.Context, func() ([]xpkg.Document, error) {
				return xpkg.Split(raw, filepath.ToSlash(file), c.StreamLimits())
			})
			if err != nil {
				return nil, err
			}
			if i == 0 && len(c.Resources) > 1 {
				more = slices.DeleteFunc(more, validation.IsComposition)
			}
			docs = append(docs, more...)
		}
	}
	return docs, nil
}

// resourceFiles returns the YAML files of a folder and its subfolders, or the file itself.
func resourceFiles(name string) ([]string, error) {
	info, err := os.Stat(name)
	if name == "-" || err == nil && !info.IsDir() {
		return []string{name}, nil
	}
	if err != nil {
		return nil, location.ErrReadFile.New(err, "cannot read %s", name)
	}
	var files []string
	err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && author.IsYAMLFile(path) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, location.ErrReadFile.New(err, "cannot read %s", name)
	}
	return files, nil
}
