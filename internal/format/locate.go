package format

import (
	"strconv"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
)

// lineOf is the line within the document of the field at a path such as
// "spec.dependsOn[0].version", or of the last part of the path that is there; 0
// for no path. It parses the document again, so it is for messages only.
func (d Document) lineOf(path string) int {
	if path == "" || d.Raw == nil {
		return 0
	}
	var root yaml3.Node
	if err := yaml3.Unmarshal(d.Raw, &root); err != nil || len(root.Content) == 0 {
		return 0
	}
	at, line := root.Content[0], 0
	for _, step := range steps(path) {
		key, value := child(at, step)
		if value == nil {
			return line
		}
		at, line = value, key.Line
	}
	return line
}

// steps cuts a path at dots and brackets. A key in brackets may hold dots.
func steps(path string) []string {
	var out []string
	for path != "" {
		if path[0] == '[' {
			end := strings.IndexByte(path, ']')
			if end < 0 {
				end = len(path) - 1
			}
			out = append(out, path[1:end])
			path = strings.TrimPrefix(path[end+1:], ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		out = append(out, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return out
}

// child finds a field of a mapping or an element of a sequence, and the node at
// whose line it starts.
func child(n *yaml3.Node, step string) (key, value *yaml3.Node) {
	if n.Kind == yaml3.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}
