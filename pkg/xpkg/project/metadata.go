package project

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// configuration is the metadata of a package.
type configuration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name,omitempty"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Crossplane   *crossplane         `json:"crossplane,omitempty"`
		Capabilities []string            `json:"capabilities,omitempty"`
		DependsOn    []packageDependency `json:"dependsOn,omitempty"`
	} `json:"spec"`
}

// metadata is the metadata of a package of a Project.
type metadata struct {
	configuration
	// renamed are the paths of the Project for those of the metadata that differ.
	renamed map[string]string
}

// WithFunctions returns the metadata of the Configuration, which also depends on functions of the Project.
func (p *Project) WithFunctions(functions []dependency.Dependency) xpkg.Document {
	m := p.meta
	m.Spec.DependsOn = slices.Clone(m.Spec.DependsOn)
	for _, d := range functions {
		m.Spec.DependsOn = append(m.Spec.DependsOn, packageDependency{
			APIVersion: d.APIVersion, Kind: d.Kind, Package: d.Package, Version: d.Constraint,
		})
	}
	return m.document(p.doc)
}

// FunctionMeta returns the metadata of the package of a function of the Project.
func (p *Project) FunctionMeta(name string) xpkg.Document {
	m := p.meta
	m.Kind = string(xpkg.Function)
	m.Metadata.Name = p.Name + "-" + name
	m.Metadata.Annotations = maps.Clone(m.Metadata.Annotations)
	if m.Metadata.Annotations == nil {
		m.Metadata.Annotations = map[string]string{}
	}
	delete(m.Metadata.Annotations, xpkg.AnnotationReadme)
	m.Metadata.Annotations[xpkg.AnnotationDescription] = fmt.Sprintf("The function %s of %s.", name, p.Name)
	m.Spec.Crossplane, m.Spec.DependsOn = nil, nil
	m.Spec.Capabilities = []string{xpkg.CapabilityComposition, xpkg.CapabilityOperation}
	return m.document(p.doc)
}

// document returns the metadata as a document whose lines are those of the Project.
func (m metadata) document(from xpkg.Document) xpkg.Document {
	object, err := json.Marshal(m.configuration)
	var raw []byte
	if err == nil {
		raw, err = xpkg.EncodeDocument(object)
	}
	if err != nil {
		panic("strings cannot be encoded: " + err.Error())
	}
	first := from.Finding(xpkg.ErrNoMeta, 0, "").Line
	lines := sync.OnceValue(func() map[int]int {
		var value any
		_ = json.Unmarshal(object, &value) // json.Marshal wrote it.
		l := mapping{
			to: yamldoc.Locator{Raw: raw}, from: yamldoc.Locator{Raw: from.Raw}, renamed: m.renamed, lines: map[int]int{},
		}
		l.add("", "", value)
		return l.lines
	})
	return xpkg.GeneratedDocument(from.File, first, raw, func(line int) int {
		for ; line > 0; line-- {
			if at := lines()[line]; at > 0 {
				return from.Line + at - 1
			}
		}
		return first
	})
}

// mapping maps the lines of the metadata to those of the Project.
type mapping struct {
	to, from yamldoc.Locator
	renamed  map[string]string
	lines    map[int]int
}

// add adds the lines of a value, which is at a path of the metadata and at one of the Project.
func (m *mapping) add(to, from string, value any) {
	if renamed := m.renamed[to]; renamed != "" {
		from = renamed
	}
	if line := m.to.Line(to); m.lines[line] == 0 {
		m.lines[line] = m.from.Line(from)
	}
	switch v := value.(type) {
	case map[string]any:
		for key, value := range v {
			m.add(child(to, key), child(from, key), value)
		}
	case []any:
		for i, value := range v {
			m.add(fmt.Sprintf("%s[%d]", to, i), fmt.Sprintf("%s[%d]", from, i), value)
		}
	}
}

// child returns the path of a field.
func child(at, key string) string {
	switch {
	case at == "":
		return key
	case strings.ContainsAny(key, ".[]"):
		return at + "[" + key + "]"
	}
	return at + "." + key
}
