package author

import (
	"path"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/oci"
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
