package firstgen

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// crdSource is a document that defines versions of a CRD.
type crdSource struct {
	file     string
	doc      xpkg.Document
	versions []string
}

// A Placer finds the places in the files of a package that findings about its conversion concern.
type Placer struct {
	pkg        *Package
	conversion *Conversion
	// paths are the fields of the lines of each converted document, and sources the parsed documents of the package.
	paths   map[int]map[int]string
	sources map[string]*source
}

// NewPlacer returns a Placer for findings about the stream of a conversion of a package.
func NewPlacer(p *Package, c *Conversion) *Placer {
	return &Placer{pkg: p, conversion: c, paths: map[int]map[int]string{}, sources: map[string]*source{}}
}

// Place returns a finding about the converted stream with the file and the line of the package that it concerns, and
// false if no file of the package contains it.
func (p *Placer) Place(f xpkg.Finding) (xpkg.Finding, bool) {
	if f.Document < 1 || f.Document > len(p.conversion.Documents) {
		return f, false
	}
	path := p.path(f.Document-1, f.Line)
	for i := range p.pkg.Resources {
		if r := &p.pkg.Resources[i]; p.conversion.Documents[f.Document-1].Name == r.CRD.Name {
			f.File, f.Line = p.locate(r, path)
			f.Document = 0
			return f, true
		}
	}
	f.File, f.Line, f.Document = appFile, 0, 0
	return f, f.Severity == xpkg.Error
}

// ignoredSettings are parts of the paths of settings that give a program access to a node or to other objects.
var ignoredSettings = []string{"securityContext", ".host", "olume", "rocMount", ".env"}

// IgnoredSettings returns a warning for each setting of install.yaml that has no effect because packages are not
// trusted.
func (p *Placer) IgnoredSettings() []xpkg.Finding {
	if p.pkg.Install == nil {
		return nil
	}
	var out []xpkg.Finding
	line := lines(p.pkg.Install.doc)
	for _, l := range p.conversion.Losses {
		ignored := slices.ContainsFunc(ignoredSettings, func(part string) bool { return strings.Contains(l.Field, part) })
		if l.Reason == ReasonContainer || l.Reason == ReasonDeploymentField && ignored {
			out = append(out, xpkg.Finding{
				Code: ErrIgnoredSetting, Severity: xpkg.Warning, Message: fmt.Sprintf("%.260s: %s", shown(l.Field), l.Message),
				File: installFile, Line: line(l.Field),
				Fix: ErrIgnoredSetting.Fix,
			})
		}
	}
	return out
}

// path returns the path of the field in a line of the stream, which is in the given document.
func (p *Placer) path(document, line int) string {
	for _, d := range p.conversion.Documents[:document] {
		line -= bytes.Count(d.YAML, []byte("\n")) + 1
	}
	paths, ok := p.paths[document]
	if !ok {
		paths = map[int]string{}
		var root yaml.Node
		if yaml.Unmarshal(p.conversion.Documents[document].YAML, &root) == nil && len(root.Content) > 0 {
			addPaths(paths, root.Content[0], "")
		}
		p.paths[document] = paths
	}
	return paths[line]
}

// addPaths adds the path of the first field of each line.
func addPaths(paths map[int]string, n *yaml.Node, path string) {
	add := func(key, value *yaml.Node, path string) {
		if _, ok := paths[key.Line]; !ok {
			paths[key.Line] = path
		}
		addPaths(paths, value, path)
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			switch {
			case strings.ContainsAny(name, ".["):
				name = path + "[" + name + "]"
			case path != "":
				name = path + "." + name
			}
			add(n.Content[i], n.Content[i+1], name)
		}
	case yaml.SequenceNode:
		for i, e := range n.Content {
			add(e, e, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// locate returns the file and the line of a field of a converted CRD, or of its nearest parent.
func (p *Placer) locate(r *Resource, path string) (file string, line int) {
	s, candidates := r.sourceOf(path)
	src, ok := p.sources[s.file+":"+strconv.Itoa(s.doc.Line)]
	if !ok {
		src = sourceOf(s.doc)
		p.sources[s.file+":"+strconv.Itoa(s.doc.Line)] = src
	}
	for _, c := range candidates {
		line = max(line, src.line(c))
	}
	return s.file, line
}

const versionsField = "spec.versions["

// sourceOf returns the document with a field of the converted CRD, and the paths that the field can have in it: v1beta1
// has fields of the only version beside the versions.
func (r *Resource) sourceOf(path string) (crdSource, []string) {
	rest, ok := strings.CutPrefix(path, versionsField)
	if !ok {
		return r.sources[0], []string{path}
	}
	index, rest, _ := strings.Cut(rest, "]")
	i, err := strconv.Atoi(index)
	if err != nil || i >= len(r.CRD.Spec.Versions) {
		return r.sources[0], []string{path}
	}
	for _, s := range r.sources {
		for j, name := range s.versions {
			if name == r.CRD.Spec.Versions[i].Name {
				return s,
					[]string{versionsField + strconv.Itoa(j) + "]" + rest, "spec" + strings.Replace(rest, ".schema", ".validation", 1)}
			}
		}
	}
	return r.sources[0], []string{path}
}
