package folder

import (
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
)

// examplesOf returns the examples of a kind.
func examplesOf(all []docs.Example, group, kind string) []docs.Example {
	var out []docs.Example
	for _, e := range all {
		if !strings.Contains(e.YAML, kind) || !strings.Contains(e.YAML, group) {
			continue
		}
		var head struct{ APIVersion, Kind string }
		if yaml.Unmarshal([]byte(e.YAML), &head) == nil && head.Kind == kind && strings.HasPrefix(head.APIVersion, group+"/") {
			out = append(out, e)
		}
	}
	return out
}
