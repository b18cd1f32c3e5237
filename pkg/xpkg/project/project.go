package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// Files are the names of the file of a Project, the preferred one first.
var Files = []string{"crossplane-project.yaml", "upbound.yaml"}

// A Project is the content of the file of a Project, with its defaults.
type Project struct {
	// Name is the name of the Configuration.
	Name string
	// Repository is the repository of the Configuration, as it was written; empty if it is missing.
	Repository string
	// Paths are the folders of the Project.
	Paths Paths
	// Architectures are those of the runtime images of the functions.
	Architectures []string
	// Declared are the functions that the file lists. If there are none, the functions are the folders below
	// Paths.Functions.
	Declared []Function
	// Meta is the metadata of the Configuration, which depends on no function of the Project itself.
	Meta xpkg.Document

	doc  xpkg.Document
	meta metadata
}

// Paths are the folders of a Project, relative to it, as clean paths with slashes. Operations and Schemas are empty if
// the API version does not know them.
type Paths struct{ APIs, Functions, Examples, Tests, Operations, Schemas string }

// written are the folders that the field's tools write into a Project.
var written = []string{"_output", ".up"}

// Find returns the name of the file of the Project in a folder, and "" if there is none. Ignored patterns are those of
// xpkg.FolderOptions: an ignored file makes no Project.
func Find(fsys fs.FS, ignored []string) string {
	for _, file := range Files {
		info, err := fs.Stat(fsys, file)
		if err == nil && info.Mode().IsRegular() && !slices.ContainsFunc(ignored, func(pattern string) bool {
			match, err := path.Match(pattern, file)
			return err == nil && match
		}) {
			return file
		}
	}
	return ""
}

// Open reads the file of a Project in a folder, and returns the layout of its package. The Project is nil if the file
// is not that of a Project; the layout contains the reason.
func Open(fsys fs.FS, file string, limits xpkg.Limits) (*Project, *xpkg.Layout, error) {
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, nil, xpkg.ErrUnreadableFile.New(err, "cannot read %q", file)
	}
	p, findings := Read(text, file, limits)
	layout := &xpkg.Layout{Findings: findings}
	if p == nil {
		return nil, layout, nil
	}
	layout.Meta, layout.Parts = p.Meta, p.parts()
	if info, err := fs.Stat(fsys, p.Paths.APIs); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		layout.Findings = append(layout.Findings, p.finding(
			xpkg.ErrMalformedMeta, "spec.paths.apis", fmt.Sprintf("the folder %.200q of the APIs does not exist", p.Paths.APIs),
		))
	}
	return p, layout, nil
}

var (
	apiKinds       = groupKinds(kinds.GroupComposition, kinds.XRD, kinds.Composition, kinds.MRAP)
	operationKinds = groupKinds(kinds.GroupOperation, kinds.Operation, kinds.CronOperation, kinds.WatchOperation)
)

func groupKinds(group string, names ...string) []schema.GroupKind {
	var out []schema.GroupKind
	for _, name := range names {
		out = append(out, schema.GroupKind{Group: group, Kind: name})
	}
	return out
}

// parts returns the folders with the objects of the package. The folder of the APIs can be the whole Project.
func (p *Project) parts() []xpkg.Part {
	all := append([]string{
		p.Paths.APIs, p.Paths.Functions, p.Paths.Examples, p.Paths.Tests, p.Paths.Operations, p.Paths.Schemas,
	}, written...)
	part := func(folder string, kinds []schema.GroupKind) xpkg.Part {
		others := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return f == folder })
		return xpkg.Part{Folder: folder, Except: others, Kinds: kinds}
	}
	switch p.Paths.Operations {
	case "":
		return []xpkg.Part{part(p.Paths.APIs, apiKinds)}
	case p.Paths.APIs:
		return []xpkg.Part{part(p.Paths.APIs, slices.Concat(apiKinds, operationKinds))}
	}
	return []xpkg.Part{part(p.Paths.APIs, apiKinds), part(p.Paths.Operations, operationKinds)}
}

// finding returns a finding about the field at a path.
func (p *Project) finding(code errcode.Code, at, message string) xpkg.Finding {
	f := p.doc.Finding(code, p.doc.FieldLine(at), message)
	f.Kind, f.Name = kind, p.Name
	return f
}
