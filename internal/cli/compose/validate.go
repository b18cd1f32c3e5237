package compose

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Codes of resources.
var (
	ErrInvalidResource = errcode.Code{
		Name: "InvalidResource", Class: errcode.Invalid,
		Cause: "An API server would reject the resource, or drop a field of it: it does not match the schema of its kind.",
		Fix:   "Correct the named field.",
	}
	ErrKindWithoutSchema = errcode.Code{
		Name: "KindWithoutSchema", Class: errcode.Invalid,
		Cause: "No package defines the kind of the resource.",
		Fix:   "Correct apiVersion and kind, name the package that defines the kind with --package, or accept such resources with --allow-unknown-kinds.",
	}
	ErrNothingToValidate = errcode.Code{
		Name: "NothingToValidate", Class: errcode.Invalid,
		Cause: "There is no resource to validate.",
		Fix:   "Name files or folders with resources, such as `xpkg validate examples`.",
	}
)

// ValidateCmd implements `xpkg validate`.
type ValidateCmd struct {
	Resources         []string `arg:"" optional:"" name:"resources" help:"Files with resources in YAML or JSON, folders with files of YAML, or - for standard input. CRDs and XRDs among them define kinds too. Default is the compositions and the examples of the package in this folder."`
	AllowUnknownKinds bool     `help:"Report resources of unknown kinds, and unknown functions of Compositions, as warnings."`
	SARIF             bool     `name:"sarif" help:"Print a SARIF report for code review tools."`
	dependencies.ContentsFlags
	view.OutputFlag
	location.FolderFlags
}

// Run validates resources without an API server, and fails if one is not valid.
func (c *ValidateCmd) Run(env *terminal.Env) error {
	if c.SARIF && c.Output != "" {
		return terminal.ErrUsage.New(nil, "--sarif and --output cannot be used together")
	}
	docs, err := c.documents(env)
	if err != nil {
		return err
	}
	v := &resourceValidation{allowUnknown: c.AllowUnknownKinds}
	if err := c.addSchemas(env, v, docs); err != nil {
		return err
	}
	resources, err := fileutil.Await(env.Context, func() ([]resource, error) {
		resources := v.read(docs)
		v.addInstalledFunctions(resources)
		for _, r := range resources {
			v.validate(env, r)
		}
		xpkg.SortFindings(v.findings)
		return resources, nil
	})
	if err != nil {
		return err
	}
	if len(resources) == 0 && len(v.findings) == 0 {
		return ErrNothingToValidate.New(nil, "%s: no resource was found", strings.Join(c.Resources, ", "))
	}
	if err := author.WriteReport(env.Stdout, v.findings, c.SARIF, c.OutputFlag); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "%s\n", terminal.Safe(v.summary(len(resources))))
	if _, failed := author.CountFindings(v.findings); failed {
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

// addSchemas adds the schemas of the package API, of the packages and of their dependencies.
func (c *ValidateCmd) addSchemas(env *terminal.Env, v *resourceValidation, docs []xpkg.Document) error {
	own, err := crds.Packages()
	if err != nil {
		return err
	}
	for _, d := range own {
		text, err := json.Marshal(d)
		if err != nil {
			return err
		}
		if err := v.schemas.AddCRD(text, "xpkg"); err != nil {
			return err
		}
	}
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
		pkg, err := fileutil.Await(env.Context, func() (*xpkg.Package, error) {
			pkg, err := folder.Package(xpkg.ReadOptions{Limits: c.StreamLimits(), Policy: xpkg.PolicyBuild()})
			if err != nil {
				return nil, err
			}
			return pkg, v.addPackage(pkg, p)
		})
		if err != nil {
			return err
		}
		v.addFunction(pkg, pkg.Meta.Name)
		embedded, err := embeddedFunctions(c.FolderFlags, p, c.StreamLimits())
		if err != nil {
			return err
		}
		for _, f := range embedded {
			v.functions = append(v.functions, knownFunction{names: f.names})
		}
	}
	contents, err := c.Contents(env, packages)
	if err != nil {
		return err
	}
	_, err = fileutil.Await(env.Context, func() (struct{}, error) {
		for _, p := range contents {
			if err := v.addPackage(p.Package, p.Reference); err != nil {
				return struct{}{}, err
			}
			v.addFunction(p.Package, functionNames(p)...)
		}
		return struct{}{}, nil
	})
	return err
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

// documents reads the documents of all arguments, or the compositions and the examples of the package in this folder.
func (c *ValidateCmd) documents(env *terminal.Env) ([]xpkg.Document, error) {
	if len(c.Resources) == 0 {
		if !location.IsSource(".") {
			return nil, ErrNothingToValidate.New(nil, "no resource is given, and this folder is not a package")
		}
		folder, err := c.Read(env.Context, ".", c.StreamLimits())
		if err != nil {
			return nil, err
		}
		docs := append(slices.DeleteFunc(slices.Clone(folder.Documents), isNoComposition), folder.ExampleDocuments...)
		if len(docs) == 0 {
			return nil, ErrNothingToValidate.New(nil, "the package in this folder has no compositions and no examples")
		}
		return docs, nil
	}
	var docs []xpkg.Document
	for _, name := range c.Resources {
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
			docs = append(docs, more...)
		}
	}
	return docs, nil
}

// isNoComposition reports whether a document is anything but a Composition.
func isNoComposition(d xpkg.Document) bool {
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	return d.Decode(&kind) != nil ||
		schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind).GroupKind() != compositionKind
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
