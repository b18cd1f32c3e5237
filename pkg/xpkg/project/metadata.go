package project

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

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

// generate returns the metadata as a document whose lines are those of the Project.
func (r *reader) generate(c configuration) xpkg.Document {
	object, err := json.Marshal(c)
	var raw []byte
	if err == nil {
		raw, err = xpkg.EncodeDocument(object)
	}
	if err != nil {
		r.fault(xpkg.ErrMalformedMeta, "", "the metadata cannot be written: %.200s", err)
		return xpkg.Document{}
	}
	from := r.p.doc
	first := from.Finding(xpkg.ErrNoMeta, 0, "").Line
	lines := sync.OnceValue(func() map[int]int {
		var value any
		_ = json.Unmarshal(object, &value) // json.Marshal wrote it.
		l := mapping{
			to: yamldoc.Locator{Raw: raw}, from: yamldoc.Locator{Raw: from.Raw}, renamed: r.renamed, lines: map[int]int{},
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
