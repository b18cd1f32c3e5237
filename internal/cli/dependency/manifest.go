package dependency

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ErrNotEditable is the code for metadata whose dependencies cannot be changed without a change of its other text.
var ErrNotEditable = errcode.Code{
	Name: "NotEditable", Class: errcode.Unsupported,
	Cause: "The dependencies of a package are written in a form that xpkg cannot change without a change of other text, such as a list in brackets.",
	Fix:   "Write the dependencies as a list with one item below the other, or edit the file.",
}

// entry is a dependency in the metadata of a package.
type entry struct {
	kind                xpkg.Kind
	repository, version string
	// node is the item of the list, and fields is the mapping in it that has the package and its version.
	node, fields *yaml.Node
}

// manifest is the file with the metadata of a package. Changes keep its comments and its layout.
type manifest struct {
	path  string
	lines []string
	// spec is the mapping of the spec; key and list are the field of the dependencies, or nil.
	spec, key, list *yaml.Node
	// field is the name of that field. Nested means that the fields of a dependency are below xpkg.
	field   string
	nested  bool
	entries []entry
}

// readManifest reads the metadata of the package in a folder.
func readManifest(env *terminal.Env, dir string) (*manifest, error) {
	name := location.Metadata(dir)
	if name == "" {
		return nil, xpkg.ErrNoMeta.New(nil, "the folder %s has no crossplane.yaml and is no Project", dir)
	}
	file := filepath.Join(dir, name)
	text, err := env.ReadInput(file)
	if err != nil {
		return nil, location.ErrReadFile.New(err, "cannot read %s", file)
	}
	return parseManifest(file, string(text))
}

// parseManifest reads the text of a file.
func parseManifest(path, text string) (*manifest, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return nil, ErrNotEditable.New(err, "cannot read %s", path).WithDo("Check the file with `xpkg lint`.")
	}
	m := &manifest{path: path, lines: strings.SplitAfter(text, "\n"), field: "dependsOn"}
	if last := len(m.lines) - 1; m.lines[last] == "" {
		m.lines = m.lines[:last]
	} else {
		m.lines[last] += "\n"
	}
	root := doc.Content[0]
	_, apiVersion := field(root, "apiVersion")
	if apiVersion != nil && strings.HasPrefix(apiVersion.Value, "dev.crossplane.io/") {
		m.field, m.nested = "dependencies", true
	}
	if _, m.spec = field(root, "spec"); m.spec == nil || m.spec.Kind != yaml.MappingNode || m.spec.Style == yaml.FlowStyle ||
		len(m.spec.Content) == 0 {
		return nil, ErrNotEditable.New(nil, "%s has no spec with a field in a line of its own", path).
			WithDo("Add spec.crossplane.version, or the dependencies, to the file.")
	}
	m.key, m.list = field(m.spec, m.field)
	if m.list != nil && m.list.Kind == yaml.SequenceNode {
		for _, n := range m.list.Content {
			if e, ok := m.entry(n); ok {
				m.entries = append(m.entries, e)
			}
		}
	}
	return m, nil
}

// entry reads an item of the list. It returns false for a dependency that is no package.
func (m *manifest) entry(node *yaml.Node) (entry, bool) {
	e := entry{node: node, fields: node}
	if m.nested {
		if _, e.fields = field(node, "xpkg"); e.fields == nil {
			return e, false
		}
	}
	for i := 0; i+1 < len(e.fields.Content); i += 2 {
		value := e.fields.Content[i+1].Value
		switch name := e.fields.Content[i].Value; name {
		case "kind":
			e.kind = xpkg.Kind(value)
		case "package":
			e.repository = value
		case "version":
			e.version = value
		case "provider", "configuration", "function":
			e.kind, e.repository = xpkg.Kind(strings.ToUpper(name[:1])+name[1:]), value
		}
	}
	return e, e.repository != ""
}

// find returns the dependency on a repository, whose registry can be omitted.
func (m *manifest) find(repository string) (entry, bool) {
	i := slices.IndexFunc(m.entries, func(e entry) bool {
		ref, err := oci.ParseReference(e.repository, oci.ParseOptions{AllowUntagged: true})
		return e.repository == repository || err == nil && (ref.Name() == repository || ref.Repository == repository)
	})
	if i < 0 {
		return entry{}, false
	}
	return m.entries[i], true
}

// add adds a dependency at the end of the list, in the form of the others.
func (m *manifest) add(e entry) (string, error) {
	column, at := m.spec.Content[0].Column, lastLine(m.spec)
	var prefix []string
	switch {
	case m.key == nil:
		prefix = []string{strings.Repeat(" ", column-1) + m.field + ":\n"}
	case m.list.Kind == yaml.SequenceNode && len(m.list.Content) > 0 && m.list.Style != yaml.FlowStyle:
		column, at = m.list.Column, lastLine(m.list)
	case m.list.Tag == "!!null" || m.list.Kind == yaml.SequenceNode && len(m.list.Content) == 0:
		at = m.key.Line
		m.lines[at-1] = strings.Repeat(" ", m.key.Column-1) + m.field + ":\n"
	default:
		return "", ErrNotEditable.New(nil, "%s: the list spec.%s is not in lines of its own", m.path, m.field)
	}
	lines := slices.Insert(slices.Clone(m.lines), at, append(prefix, m.item(e, column)...)...)
	return m.edited(lines, append(slices.Clone(m.entries), e))
}

// item returns the lines of a new item whose dash is in a column.
func (m *manifest) item(e entry, column int) []string {
	body := []string{
		"apiVersion: pkg.crossplane.io/v1", "kind: " + string(e.kind), "package: " + e.repository,
	}
	if len(m.entries) > 0 && !m.nested {
		if _, modern := field(m.entries[0].node, "package"); modern == nil {
			body = []string{strings.ToLower(string(e.kind)) + ": " + e.repository}
		}
	}
	body = append(body, fmt.Sprintf("version: %q", e.version))
	if m.nested {
		for i := range body {
			body[i] = "  " + body[i]
		}
		body = append([]string{"type: xpkg", "xpkg:"}, body...)
	}
	indent := strings.Repeat(" ", column-1)
	for i, text := range body {
		dash := "  "
		if i == 0 {
			dash = "- "
		}
		body[i] = indent + dash + text + "\n"
	}
	return body
}

// remove removes a dependency with the comments above it, and an empty list.
func (m *manifest) remove(e entry) (string, error) {
	first, last := e.node.Line, lastLine(e.node)
	if m.list.Style == yaml.FlowStyle || e.node.Style == yaml.FlowStyle && first != last {
		return "", ErrNotEditable.New(nil, "%s: the list spec.%s is not in lines of its own", m.path, m.field)
	}
	for first > 1 && strings.HasPrefix(strings.TrimSpace(m.lines[first-2]), "#") && e.node.HeadComment != "" {
		first--
	}
	var instead []string
	if len(m.list.Content) == 1 {
		first = m.key.Line
		if len(m.spec.Content) == 2 { // A spec needs a field.
			instead = []string{strings.Repeat(" ", m.key.Column-1) + m.field + ": []\n"}
		}
	}
	rest := slices.DeleteFunc(slices.Clone(m.entries), func(other entry) bool { return other.node == e.node })
	return m.edited(slices.Replace(slices.Clone(m.lines), first-1, last, instead...), rest)
}

// setVersion replaces the constraint of a dependency.
func (m *manifest) setVersion(e entry, version string) (string, error) {
	_, value := field(e.fields, "version")
	lines, want := slices.Clone(m.lines), slices.Clone(m.entries)
	for i := range want {
		if want[i].node == e.node {
			want[i].version = version
		}
	}
	if value == nil {
		key, _ := field(e.fields, "package")
		if key == nil {
			key = e.fields.Content[0]
		}
		text := strings.Repeat(" ", key.Column-1) + fmt.Sprintf("version: %q\n", version)
		return m.edited(slices.Insert(lines, key.Line, text), want)
	}
	line := lines[value.Line-1]
	before, rest := line[:value.Column-1], line[value.Column-1:]
	end := len(value.Value)
	if quote := rest[:1]; quote == `"` || quote == "'" {
		i := strings.Index(rest[1:], quote)
		if i < 0 {
			return "", ErrNotEditable.New(nil, "%s:%d: the version is not in one line", m.path, value.Line)
		}
		end = i + 2
	}
	if end > len(rest) {
		return "", ErrNotEditable.New(nil, "%s:%d: the version is not in one line", m.path, value.Line)
	}
	lines[value.Line-1] = before + fmt.Sprintf("%q", version) + rest[end:]
	return m.edited(lines, want)
}

// edited returns changed text, after a check that it has the wanted dependencies, and that nothing else has changed.
func (m *manifest) edited(lines []string, want []entry) (string, error) {
	text := strings.Join(lines, "")
	if !reflect.DeepEqual(m.rest(strings.Join(m.lines, "")), m.rest(text)) {
		return "", ErrNotEditable.New(nil, "%s: another field would change too", m.path)
	}
	got, err := parseManifest(m.path, text)
	if err != nil {
		return "", err
	}
	if !slices.EqualFunc(got.entries, want, func(a, b entry) bool {
		return a.kind == b.kind && a.repository == b.repository && a.version == b.version
	}) {
		return "", ErrNotEditable.New(nil, "%s: another dependency would change too", m.path)
	}
	return text, nil
}

// rest returns everything but the dependencies.
func (m *manifest) rest(text string) any {
	var all map[string]any
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		return err.Error()
	}
	if spec, ok := all["spec"].(map[string]any); ok {
		delete(spec, m.field)
	}
	return all
}

// field returns a field of a mapping and its value, or nil.
func field(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	if mapping.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// lastLine returns the last line of a node.
func lastLine(n *yaml.Node) int {
	last := n.Line
	if n.Kind == yaml.ScalarNode && (n.Style == yaml.LiteralStyle || n.Style == yaml.FoldedStyle) {
		last += strings.Count(strings.TrimRight(n.Value, "\n"), "\n") + 1
	}
	for _, c := range n.Content {
		last = max(last, lastLine(c))
	}
	return last
}
