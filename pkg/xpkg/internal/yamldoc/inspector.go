package yamldoc

import (
	"fmt"

	yaml3 "go.yaml.in/yaml/v3"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrDuplicateKey is the code for a mapping with a duplicate key.
var ErrDuplicateKey = errcode.Code{
	Name: "DuplicateKey", Class: errcode.Invalid,
	Cause: "A mapping has the same key twice; readers disagree about which value applies.",
	Fix:   "Remove one of the two.",
}

// inspector walks the nodes of a document and rejects unsupported features before
// anything is expanded.
type inspector struct {
	limits *Limits
	// lenient accepts duplicate keys; duplicate is the first of them.
	lenient   bool
	duplicate *Fault
	nodes     int
	aliased   weight
	// weights holds the weights of nodes with anchors, with aliases expanded. A node that
	// is still being measured has a negative weight.
	weights map[*yaml3.Node]weight
}

// weight is the size of a node after expansion.
type weight struct{ nodes, bytes int }

func (w *weight) add(other weight) {
	w.nodes += other.nodes
	w.bytes += other.bytes
}

func (in *inspector) inspect(root *yaml3.Node) *Fault {
	in.nodes = -1 // the document itself
	_, f := in.node(root, 0)
	return f
}

// node inspects a node at a depth and all nodes below it, and returns its weight with aliases expanded.
func (in *inspector) node(n *yaml3.Node, depth int) (weight, *Fault) {
	if n.Kind == yaml3.AliasNode {
		return in.alias(n)
	}
	if in.nodes++; in.nodes > in.limits.Nodes {
		return weight{}, in.limits.exceeds(&in.limits.Nodes, n.Line)
	}
	if n.Style&yaml3.TaggedStyle != 0 {
		return weight{}, &Fault{Code: ErrUnsupportedYAML, Line: n.Line, What: fmt.Sprintf("YAML tag %.40q", n.Tag)}
	}
	if n.Kind == yaml3.ScalarNode {
		return in.scalar(n)
	}
	return in.collection(n, depth)
}

func (in *inspector) scalar(n *yaml3.Node) (weight, *Fault) {
	w := weight{nodes: 1, bytes: len(n.Value)}
	if w.bytes > in.limits.ScalarBytes {
		return w, in.limits.exceeds(&in.limits.ScalarBytes, n.Line)
	}
	if n.Style == 0 {
		if _, ok := appendPlain(nil, []byte(n.Value)); !ok {
			return w,
				&Fault{Code: ErrUnsupportedYAML, Line: n.Line, What: fmt.Sprintf("the number %s does not exist in JSON", n.Value)}
		}
	}
	if n.Anchor != "" {
		in.weights[n] = w
	}
	return w, nil
}

// collection inspects a mapping, a sequence or the document itself.
func (in *inspector) collection(n *yaml3.Node, depth int) (weight, *Fault) {
	if n.Kind != yaml3.DocumentNode {
		depth++
	}
	if depth > in.limits.Depth {
		return weight{}, in.limits.exceeds(&in.limits.Depth, n.Line)
	}
	if n.Anchor != "" {
		in.weights[n] = weight{nodes: -1}
	}
	if n.Kind == yaml3.MappingNode {
		if f := in.keys(n); f != nil {
			return weight{}, f
		}
	}
	total := weight{nodes: 1}
	for _, child := range n.Content {
		w, f := in.node(child, depth)
		if f != nil {
			return weight{}, f
		}
		total.add(w)
	}
	if n.Anchor != "" {
		in.weights[n] = total
	}
	return total, nil
}

// keys rejects keys that JSON cannot represent, and keys that are equal as strings. A lenient reader accepts
// equal keys of the same type; for keys of different types, such as 1 and "1", it is undefined which value
// applies.
func (in *inspector) keys(n *yaml3.Node) *Fault {
	seen := make(map[string]string, len(n.Content)/2) // The type of each key.
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml3.AliasNode {
			key = key.Alias
		}
		name, f := keyName(key)
		if f != nil {
			return f
		}
		tag := key.ShortTag()
		if former, exists := seen[name]; exists {
			f := &Fault{Code: ErrDuplicateKey, Line: key.Line, What: fmt.Sprintf("key %.80q occurs twice", name)}
			if !in.lenient || former != tag {
				return f
			}
			if in.duplicate == nil {
				in.duplicate = f
			}
		}
		seen[name] = tag
	}
	return nil
}

// keyName returns a key as a string, or why it cannot be a key in JSON.
func keyName(key *yaml3.Node) (string, *Fault) {
	if key.Kind != yaml3.ScalarNode {
		return "", &Fault{Code: ErrUnsupportedYAML, Line: key.Line, What: "a key that is a mapping or a sequence"}
	}
	if key.Style != 0 {
		return key.Value, nil
	}
	if key.Value == "<<" {
		return "", &Fault{Code: ErrUnsupportedYAML, Line: key.Line, What: `merge key "<<"`}
	}
	name, ok := plainKey([]byte(key.Value))
	if !ok {
		return "",
			&Fault{Code: ErrUnsupportedYAML, Line: key.Line, What: fmt.Sprintf("the key %.40q is not a string", key.Value)}
	}
	return string(name), nil
}

// alias returns the weight of the target of an alias.
func (in *inspector) alias(n *yaml3.Node) (weight, *Fault) {
	w := in.weights[n.Alias]
	if w.nodes < 0 {
		return w, &Fault{Code: ErrYAMLLimit, Line: n.Line, What: fmt.Sprintf("anchor %.40q contains itself", n.Value)}
	}
	in.aliased.add(w)
	if in.aliased.nodes > in.limits.AliasNodes {
		return w, in.limits.exceeds(&in.limits.AliasNodes, n.Line)
	}
	if in.aliased.bytes > in.limits.DocumentBytes {
		return w, in.limits.exceeds(&in.limits.DocumentBytes, n.Line)
	}
	return w, nil
}
