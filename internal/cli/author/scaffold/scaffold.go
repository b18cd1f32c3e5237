// Package scaffold writes the files of a new package, from templates that build, pass their tests and install.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
)

//go:embed all:files
var files embed.FS

const (
	suffix = ".tmpl"
	// groupName in the path of a template stands for the API group.
	groupName = "GROUP"
	// controllerGen is the version of controller-gen in the templates.
	controllerGen = "v0.23.0"
)

// ErrFolderNotEmpty is the code for a folder that already contains files.
var ErrFolderNotEmpty = errcode.Code{
	Name: "FolderNotEmpty", Class: errcode.Conflict,
	Cause: "The folder for the new package already contains files.",
	Fix:   "Choose another folder with --directory.",
}

// Package describes a new package.
type Package struct {
	// Kind is the template: provider, configuration, function or project.
	Kind string
	// Name is the name of the package.
	Name string
	// Module is the path of the Go module; a Configuration has none.
	Module string
	// Group is the API group of the kinds of the package.
	Group string
	// Repository is that of a Project.
	Repository string
}

// RepositoryPath returns the repository without its registry.
func (p Package) RepositoryPath() (string, error) {
	ref, err := oci.ParseReference(p.Repository, oci.ParseOptions{AllowUntagged: true})
	return ref.Repository, err
}

// FunctionName returns the name that a cluster gives to a function of the Project.
func (p Package) FunctionName(name string) (string, error) {
	path, err := p.RepositoryPath()
	return oci.ToDNSLabel((&project.Project{Repository: path}).FunctionRepository(name)), err
}

// ControllerGen returns the version of controller-gen for the templates.
func (Package) ControllerGen() string { return controllerGen }

// Source returns the URL in the metadata of the package: that of the Go module, if its path begins with a domain.
func (p Package) Source() string {
	if host, _, _ := strings.Cut(p.Module, "/"); strings.Contains(host, ".") {
		return "https://" + p.Module
	}
	return "https://example.org/" + p.Name
}

// Files returns the files of the package by their slash-separated paths.
func (p Package) Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	base := path.Join("files", p.Kind)
	err := fs.WalkDir(files, base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := template.New(name).Option("missingkey=error").Parse(string(text))
		if err != nil {
			return err
		}
		var content bytes.Buffer
		if err := parsed.Execute(&content, p); err != nil {
			return err
		}
		at := strings.TrimSuffix(strings.TrimPrefix(name, base+"/"), suffix)
		out[strings.ReplaceAll(at, groupName, p.Group)] = content.Bytes()
		return nil
	})
	return out, err
}

// Write writes the files of the package to a folder, which it creates, and returns their number. It fails with
// ErrFolderNotEmpty if the folder contains files, and leaves no files behind after an error.
func (p Package) Write(folder string) (count int, err error) {
	content, err := p.Files()
	if err != nil {
		return 0, err
	}
	existing, err := os.ReadDir(folder)
	created := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !created:
		return 0, err
	case len(existing) > 0:
		return 0, ErrFolderNotEmpty.New(nil, "the folder %s contains %s", folder, existing[0].Name())
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return 0, err
	}
	root, err := fileutil.OpenFolder(folder)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	defer func() {
		if err == nil {
			return
		}
		for name := range content {
			top, _, _ := strings.Cut(name, "/")
			err = errors.Join(err, root.RemoveAll(top))
		}
		if created {
			err = errors.Join(err, os.Remove(folder))
		}
	}()
	for name, data := range content {
		if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o777); err != nil {
			return 0, err
		}
		if err := root.WriteFile(filepath.FromSlash(name), data, 0o666); err != nil {
			return 0, fmt.Errorf("write %s: %w", name, err)
		}
	}
	return len(content), nil
}
