package terminal

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// PrintManifests prints objects so that kubectl takes them: a stream of YAML, or a
// list in JSON.
func PrintManifests(w io.Writer, layout string, objects []map[string]any) error {
	if layout == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	for _, o := range objects {
		raw, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s", raw); err != nil {
			return err
		}
	}
	return nil
}
