package author

import (
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
)

// EmbeddedFunction is a function of a Project.
type EmbeddedFunction struct {
	project.Function
	// Names are the names that its Function object may have: that of a dependency first.
	Names []string
}

// EmbeddedFunctions returns the functions of the Project in a folder; none for another folder.
func EmbeddedFunctions(flags location.FolderFlags, dir string, limits xpkg.Limits) ([]EmbeddedFunction, error) {
	p, functions, err := flags.Project(dir, limits)
	if err != nil {
		return nil, err
	}
	var out []EmbeddedFunction
	for _, f := range functions {
		e := EmbeddedFunction{Function: f, Names: []string{p.Name + "-" + f.Name}}
		if ref, err := oci.ParseReference(p.FunctionRepository(f.Name), oci.ParseOptions{AllowUntagged: true}); err == nil {
			e.Names = append([]string{oci.ToDNSLabel(ref.Repository), path.Base(ref.Repository)}, e.Names...)
		}
		out = append(out, e)
	}
	return out, nil
}

// LocalFunctions builds functions of the Project in a folder for this machine.
type LocalFunctions struct {
	command *BuildCmd
	project *projectBuild
	known   []EmbeddedFunction
	built   map[string]*image.Image
}

// OpenLocalFunctions returns the functions of the Project in a folder; none for another folder. It must be closed.
func OpenLocalFunctions(
	templating TemplatingFlag, dir string, transfer location.TransferFlags,
) (*LocalFunctions, error) {
	c := &BuildCmd{PackageRoot: dir, TemplatingFlag: templating, TransferFlags: transfer}
	p, _, err := c.Project(dir, c.StreamLimits())
	if err != nil {
		return nil, err
	}
	known, err := EmbeddedFunctions(c.FolderFlags, dir, c.StreamLimits())
	if err != nil {
		return nil, err
	}
	b := &projectBuild{Project: p, done: func() error { return nil }}
	return &LocalFunctions{command: c, project: b, known: known, built: map[string]*image.Image{}}, nil
}

// Image returns the image of the function to which a Composition refers by a name, and nil if it is not one of the
// Project. The function is built once.
func (l *LocalFunctions) Image(env *terminal.Env, name string) (*image.Image, error) {
	i := slices.IndexFunc(l.known, func(f EmbeddedFunction) bool { return slices.Contains(f.Names, name) })
	if i < 0 {
		return nil, nil //nolint:nilnil // Another package has the function.
	}
	f := l.known[i].Function
	if image := l.built[f.Name]; image != nil {
		return image, nil
	}
	if err := xpkg.Failed(unbuildable(l.command.PackageRoot, []project.Function{f})); err != nil {
		return nil, err
	}
	platform := oci.Platform{OS: "linux", Architecture: runtime.GOARCH}
	images, err := l.project.images(env, l.command, f, []oci.Platform{platform})
	if err != nil {
		return nil, err
	}
	l.built[f.Name] = images[0]
	return images[0], nil
}

// Close closes the images of the functions.
func (l *LocalFunctions) Close() error { return l.project.done() }

// AddEmbedded adds the functions of a Project to those that Compositions may name.
func AddEmbedded(v *validation.Validation, functions []EmbeddedFunction) {
	for _, f := range functions {
		v.AddFunction(false, f.Names[0], f.Names[1:]...)
	}
}

// unbuildable returns the findings about the functions of the Project in a folder that xpkg cannot build.
func unbuildable(dir string, functions []project.Function) []xpkg.Finding {
	var out []xpkg.Finding
	for _, f := range functions {
		if f.Folder == "" || f.Language == project.Go || f.Language == project.GoTemplates {
			continue
		}
		out = append(out, xpkg.Finding{
			Code: ErrFunctionNotBuildable, Severity: xpkg.Error, File: filepath.ToSlash(filepath.Join(dir, f.Folder)),
			Message: "the function " + f.Name + " is written in " + string(f.Language), Fix: ErrFunctionNotBuildable.Fix,
		})
	}
	return out
}
