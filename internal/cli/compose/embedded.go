package compose

import (
	"errors"
	"path"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
)

// embeddedFunction is a function of a Project in a folder.
type embeddedFunction struct {
	project.Function
	// names are the names that its Function object may have, as for functionNames.
	names []string
}

// embeddedFunctions returns the functions of the Project in a folder; none for another folder.
func embeddedFunctions(flags location.FolderFlags, dir string, limits xpkg.Limits) ([]embeddedFunction, error) {
	p, functions, err := flags.Project(dir, limits)
	if err != nil {
		return nil, err
	}
	var out []embeddedFunction
	for _, f := range functions {
		e := embeddedFunction{Function: f, names: []string{p.Name + "-" + f.Name}}
		if ref, err := oci.ParseReference(p.FunctionRepository(f.Name), oci.ParseOptions{AllowUntagged: true}); err == nil {
			e.names = append([]string{oci.ToDNSLabel(ref.Repository), path.Base(ref.Repository)}, e.names...)
		}
		out = append(out, e)
	}
	return out, nil
}

// adviseEmbedded returns the error for a function that is not known. It is another one if the function belongs to the
// Project in this folder.
func adviseEmbedded(failed error, name string) error {
	functions, err := embeddedFunctions(location.FolderFlags{}, ".", xpkg.Limits{})
	if err != nil || !errors.Is(failed, ErrFunctionUnknown) {
		return failed
	}
	i := slices.IndexFunc(functions, func(f embeddedFunction) bool { return slices.Contains(f.names, name) })
	if i < 0 {
		return failed
	}
	return ErrFunctionUnknown.New(nil, "the function %s belongs to the Project in this folder", name).WithDo(
		"Run its program with --insecure, and pass a file with a Function of this name and the annotation %s: %s.",
		runtimeAnnotation, developmentRuntime,
	)
}
