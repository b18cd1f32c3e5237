package view

import (
	"io"
)

// PrintManifests prints objects in a form that kubectl accepts: a stream of YAML, or a
// list in JSON or for a template.
func PrintManifests(w io.Writer, format ObjectFormat, objects []map[string]any) error {
	if format != "" && format != "yaml" {
		return OutputFlag{Output: format}.Print(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}, nil)
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
