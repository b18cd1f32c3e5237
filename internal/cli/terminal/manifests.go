package terminal

import (
	"io"
)

// PrintManifests prints objects in a form that kubectl accepts: a stream of YAML, or a
// list in JSON.
func PrintManifests(w io.Writer, layout string, objects []map[string]any) error {
	if layout == "json" {
		return WriteJSON(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	for _, o := range objects {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
		if err := writeYAML(w, o); err != nil {
			return err
		}
	}
	return nil
}
