package yamldoc

import (
	"strconv"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
)

// maxLocated is the maximum size in bytes of a document in which fields are located. In a
// larger document a finding has the line of the document.
const maxLocated = 1 << 20

// A Locator finds the lines of the fields of one document, for messages. It parses the
// document on first use.
type Locator struct {
	// Raw is the source text of the document.
	Raw []byte

	parsed bool
	root   *yaml3.Node
}

// Line returns the line within the document of the field at a path such as
// "spec.dependsOn[0].version", or of its nearest existing parent, and 0 if unknown.
func (l *Locator) Line(path string) int {
	if path == "" {
		return 0
	}
	if !l.parsed {
		l.parsed = true
		var root yaml3.Node
		if len(l.Raw) <= maxLocated && yaml3.Unmarshal(l.Raw, &root) == nil && len(root.Content) > 0 {
			l.root = root.Content[0]
		}
	}
	at, line := l.root, 0
	for _, step := range steps(path) {
		key, value := child(at, step)
		if value == nil {
			return line
		}
		at, line = value, key.Line
	}
	return line
}

// steps splits a path at dots and brackets. A key in brackets can contain dots.
func steps(path string) []string {
	var out []string
	for path != "" {
		if path[0] == '[' {
			step, rest, _ := strings.Cut(path[1:], "]")
			out = append(out, step)
			path = strings.TrimPrefix(rest, ".")
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

// child returns a field of a mapping or an element of a sequence, and the node where it
// starts.
func child(n *yaml3.Node, step string) (key, value *yaml3.Node) {
	if n == nil {
		return nil, nil
	}
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
