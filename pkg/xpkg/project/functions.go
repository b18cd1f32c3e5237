package project

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A Function is a function that a Project contains. It is a package of its own.
type Function struct {
	// Name is the last part of the name of the package.
	Name string
	// Folder is the folder of the source. It is empty if there are images in place of it.
	Folder string
	// Tarball is the start of the paths of the runtime images, before the architecture.
	Tarball string
	// Language is that of the source.
	Language Language
}

// Language is the language in which a function is written.
type Language string

// Languages that the field's tools build.
const (
	Go          Language = "Go"
	GoTemplates Language = "Go templates"
	KCL         Language = "KCL"
	Python      Language = "Python"
	TypeScript  Language = "TypeScript"
	Unknown     Language = "an unknown language"
)

// languages are the languages by the files that tell them, in the order in which they are looked for.
var languages = []struct {
	file     string
	language Language
}{
	{"kcl.mod", KCL}, {"pyproject.toml", Python}, {"main.py", Python}, {"requirements.txt", Python}, {"go.mod", Go},
	{"package.json", TypeScript},
}

// Functions returns the functions of the Project in a folder: those that its file lists or, if it lists none, the
// folders below the folder of the functions, by name.
func (p *Project) Functions(fsys fs.FS) ([]Function, error) {
	out := slices.Clone(p.Declared)
	if len(out) == 0 {
		entries, err := fs.ReadDir(fsys, p.Paths.Functions)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, xpkg.ErrUnreadableFile.New(err, "cannot read %q", p.Paths.Functions)
		}
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, Function{Name: e.Name(), Folder: path.Join(p.Paths.Functions, e.Name())})
			}
		}
	}
	for i, f := range out {
		if f.Folder != "" {
			out[i].Language = languageOf(fsys, f.Folder)
		}
	}
	return out, nil
}

// FunctionRepository returns the repository of the package of a function.
func (p *Project) FunctionRepository(name string) string { return p.Repository + "_" + name }

// languageOf returns the language of the source in a folder. A folder with templates contains nothing else, because the
// function that runs them reads each file.
func languageOf(fsys fs.FS, folder string) Language {
	for _, l := range languages {
		if _, err := fs.Stat(fsys, path.Join(folder, l.file)); err == nil {
			return l.language
		}
	}
	found := Unknown
	_ = fs.WalkDir(fsys, folder, func(name string, d fs.DirEntry, err error) error {
		ext, hidden := path.Ext(name), strings.HasPrefix(path.Base(name), ".")
		switch {
		case err != nil || hidden && d.IsDir():
			return fs.SkipDir
		case d.IsDir() || hidden:
			return nil
		case ext != ".gotmpl" && ext != ".tmpl":
			found = Unknown
			return fs.SkipAll
		}
		found = GoTemplates
		return nil
	})
	return found
}
