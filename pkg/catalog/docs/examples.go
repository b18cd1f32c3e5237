package docs

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ParseExamples returns the examples in a stream of YAML documents, such as the one in the layer of the examples of a
// package; see [oci.Examples]. It does not parse the documents.
func ParseExamples(stream []byte) ([]Example, error) {
	documents, err := xpkg.Split(stream, "", xpkg.Limits{})
	if err != nil {
		return nil, err
	}
	return ExamplesOf(documents), nil
}

// ExamplesOf returns documents as examples. Each has the name of its file.
func ExamplesOf(documents []xpkg.Document) []Example {
	out := make([]Example, len(documents))
	for i, d := range documents {
		out[i] = Example{Name: d.File, YAML: string(d.Raw)}
	}
	return out
}

// Kind returns a kind with its examples, and false if the package does not define it.
func (p *Pack) Kind(group, kind string) (Kind, bool) {
	i := slices.IndexFunc(p.Kinds, func(k Kind) bool { return k.Group == group && k.Kind == kind })
	if i < 0 {
		return Kind{}, false
	}
	k := p.Kinds[i]
	for _, e := range p.Examples {
		if e.isOf(group, kind) {
			k.Examples = append(k.Examples, e)
		}
	}
	return k, true
}

// isOf reports whether an example is a resource of a kind. Only text with both names is parsed, because a package can
// have a thousand examples.
func (e *Example) isOf(group, kind string) bool {
	if !strings.Contains(e.YAML, kind) || !strings.Contains(e.YAML, group) {
		return false
	}
	var head struct{ APIVersion, Kind string }
	return yaml.Unmarshal([]byte(e.YAML), &head) == nil && head.Kind == kind &&
		strings.HasPrefix(head.APIVersion, group+"/")
}
