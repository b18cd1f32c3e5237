package firstgen

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// source is the parsed text of a document, for the lines of its fields and for the text of its scalars.
type source struct {
	doc  xpkg.Document
	root *yaml.Node
}

// sourceOf parses the text of a document whose JSON was read before.
func sourceOf(d xpkg.Document) *source {
	s := &source{doc: d}
	root := &yaml.Node{}
	if yaml.Unmarshal(d.Raw, root) == nil && len(root.Content) > 0 {
		s.root = root.Content[0]
	}
	return s
}

// line returns the line of the file of the field with a path such as "dependsOn[0].crd", or of its nearest existing
// parent, and the line of the document if there is none. A key in brackets can contain dots.
func (s *source) line(path string) int {
	at, line := s.root, 0
	for _, step := range steps(path) {
		var key *yaml.Node
		if key, at = childOf(at, step); at == nil {
			break
		}
		line = key.Line
	}
	return s.lineIn(line)
}

// lineIn returns the line of the file for a line of the document, from 1; 0 means the start of the document.
func (s *source) lineIn(line int) int {
	if line == 0 {
		return s.doc.Line
	}
	return s.doc.Line + line - 1
}

// steps splits a path at dots and brackets.
func steps(path string) []string {
	var out []string
	for path != "" {
		if path[0] == '[' {
			step, rest, _ := strings.Cut(path[1:], "]")
			out, path = append(out, step), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		out, path = append(out, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return out
}

// childOf returns a field of a mapping or an element of a sequence, and the node that starts it; nil if there is none.
func childOf(n *yaml.Node, step string) (key, value *yaml.Node) {
	n = target(n)
	switch {
	case n == nil:
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	case n.Kind == yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}

// target returns the node to which an alias refers, and any other node itself.
func target(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// fieldsOf returns the fields of a mapping by name, each with the node of its key.
func fieldsOf(n *yaml.Node) map[string][2]*yaml.Node {
	out := map[string][2]*yaml.Node{}
	if n = target(n); n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = [2]*yaml.Node{n.Content[i], n.Content[i+1]}
		}
	}
	return out
}

// textual returns the JSON of a document in which numbers and booleans are replaced by their text in the document where
// a Go type has a string: a version 1.10 is "1.10". It reports every other value of a wrong type, and then returns
// false.
func (r *reader) textual(d xpkg.Document, text []byte, code errcode.Code, want reflect.Type) ([]byte, bool) {
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &value); err != nil {
		return text, true // The decoder reports it.
	}
	c := &conformer{src: sourceOf(d), report: func(line int, format string, args ...any) {
		r.report(xpkg.Error, code, d.File, line, format, args...)
	}}
	value = c.conform(value, want, place{node: c.src.root})
	if c.failed {
		return nil, false
	}
	out, err := json.Marshal(value)
	if err != nil {
		return text, true
	}
	return out, true
}

// A conformer converts a value of JSON to the types of a Go type.
type conformer struct {
	src    *source
	report func(line int, format string, args ...any)
	failed bool
}

// place is the position of a value in a document.
type place struct {
	path string
	line int
	node *yaml.Node
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// conform returns value, of whose lists and maps it replaces elements.
func (c *conformer) conform(value any, want reflect.Type, at place) any {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if value == nil || reflect.PointerTo(want).Implements(unmarshaler) {
		return value
	}
	switch kind := want.Kind(); {
	case kind == reflect.String:
		return c.text(value, at)
	case kind == reflect.Bool:
		c.expect(isA[bool](value), value, "true or false", at)
	case kind >= reflect.Int && kind <= reflect.Float64:
		c.expect(isA[int64](value) || isA[float64](value), value, "a number", at)
	case kind == reflect.Slice && want.Elem().Kind() != reflect.Uint8:
		all, ok := value.([]any)
		c.expect(ok, value, "a list", at)
		for i := range all {
			all[i] = c.conform(all[i], want.Elem(), at.element(i))
		}
	case kind == reflect.Map, kind == reflect.Struct:
		all, ok := value.(map[string]any)
		c.expect(ok, value, "fields", at)
		c.conformFields(all, want, at, fieldsOf(at.node))
	}
	return value
}

// conformFields is conform for the fields of a map or a struct.
func (c *conformer) conformFields(all map[string]any, want reflect.Type, at place, nodes map[string][2]*yaml.Node) {
	field := func(name string, want reflect.Type) {
		if value, ok := all[name]; ok {
			all[name] = c.conform(value, want, at.field(name, nodes[name]))
		}
	}
	if want.Kind() == reflect.Map {
		for name := range all {
			field(name, want.Elem())
		}
		return
	}
	for i := range want.NumField() {
		f := want.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			field(name, f.Type)
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			c.conformFields(all, f.Type, at, nodes)
		}
	}
}

func (at place) element(i int) place {
	_, node := childOf(at.node, strconv.Itoa(i))
	out := place{fmt.Sprintf("%s[%d]", at.path, i), at.line, node}
	if node != nil {
		out.line = node.Line
	}
	return out
}

func (at place) field(name string, node [2]*yaml.Node) place {
	out := place{name, at.line, node[1]}
	if at.path != "" {
		out.path = at.path + "." + name
	}
	if node[0] != nil {
		out.line = node[0].Line
	}
	return out
}

// text returns the text of a scalar.
func (c *conformer) text(value any, at place) any {
	if isA[string](value) {
		return value
	}
	n := target(at.node)
	if isScalar := isA[bool](value) || isA[int64](value) || isA[float64](value); !isScalar || n == nil ||
		n.Kind != yaml.ScalarNode {
		want := "text"
		if isScalar {
			want = "text: write it in quotes"
		}
		c.expect(false, value, want, at)
		return value
	}
	return n.Value
}

func isA[T any](value any) bool {
	_, ok := value.(T)
	return ok
}

// expect reports a value of a wrong type unless ok is set.
func (c *conformer) expect(ok bool, value any, want string, at place) {
	if ok {
		return
	}
	c.failed = true
	kind := "a number"
	switch value.(type) {
	case string:
		kind = "text"
	case bool:
		kind = "true or false"
	case []any:
		kind = "a list"
	case map[string]any:
		kind = "a map"
	}
	path := at.path
	if path == "" {
		path = "the document"
	}
	c.report(c.src.lineIn(at.line), "%.200s is %s, want %s", shown(path), kind, want)
}
