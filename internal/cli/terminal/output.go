package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// OutputFlag is the -o flag of commands that print objects.
type OutputFlag struct {
	Output string `short:"o" enum:",json,yaml" default:"" placeholder:"json|yaml" help:"Print objects as JSON or YAML instead of a table."`
}

// Print writes value as JSON or YAML when that was asked for, and otherwise what
// table writes.
func (f OutputFlag) Print(w io.Writer, value any, table func(io.Writer) error) error {
	switch f.Output {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false) // constraints are full of ">"
		return enc.Encode(value)
	case "yaml":
		raw, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	}
	return table(w)
}

// WriteTable aligns rows under a header.
func WriteTable(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 3, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = strings.ReplaceAll(Safe(c), "\n", " ")
		}
		if _, err := fmt.Fprintln(tw, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}
