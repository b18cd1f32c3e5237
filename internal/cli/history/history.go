// Package history shows the generations of the installed packages.
package history

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/generation"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrNoGeneration is the code for a generation that is not stored.
var ErrNoGeneration = errcode.Code{
	Name: "GenerationNotFound", Class: errcode.NotFound,
	Cause: "There is no such generation of the installed packages: the manager keeps the last 50.",
	Fix:   "List the generations with `xpkg history`.",
}

// Codes returns the error codes of this package.
func Codes() []errcode.Code { return []errcode.Code{ErrNoGeneration} }

// Prefix begins the name of a generation where other things can be named.
const Prefix = "generation:"

// Number returns the number in the name of a generation, generation:N. Other names have none.
func Number(name string) (number int64, isGeneration bool, err error) {
	text, isGeneration := strings.CutPrefix(name, Prefix)
	if !isGeneration {
		return 0, false, nil
	}
	if number, err = strconv.ParseInt(text, 10, 64); err != nil || number < 1 {
		return 0, true, terminal.ErrUsage.New(nil, "%q is not the number of a generation", text).
			WithDo("Write generation:N, with a number that `xpkg history` shows.")
	}
	return number, true, nil
}

// Read returns all generations, newest first.
func Read(ctx context.Context, cluster client.Reader) ([]generation.Generation, error) {
	all, err := generation.List(ctx, cluster, "")
	return all, apiserver.Classify(err, "list the generations of the installed packages")
}

// Find returns a generation.
func Find(all []generation.Generation, number int64) (generation.Generation, error) {
	for _, g := range all {
		if g.Number == number {
			return g, nil
		}
	}
	if len(all) == 0 {
		return generation.Generation{}, ErrNoGeneration.New(nil, "the manager has recorded no generation yet")
	}
	return generation.Generation{}, ErrNoGeneration.New(
		nil, "there is no generation %d; the stored ones are %d to %d", number, all[len(all)-1].Number, all[0].Number,
	)
}

// entry is a generation as commands print it.
type entry struct {
	Number       int64     `json:"number"`
	Healthy      bool      `json:"healthy"`
	Time         time.Time `json:"time"`
	By           []string  `json:"by,omitempty"`
	Why          []string  `json:"why,omitempty"`
	Transactions []string  `json:"transactions,omitempty"`
	// Changes are the differences from the generation before. They are absent if that one is not stored any more.
	Changes  []difference         `json:"changes,omitempty"`
	Packages []generation.Package `json:"packages,omitempty"`

	changes []generation.Change
}

// difference is a change of a package as commands print it. References have the digest of the content.
type difference struct {
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	From     string   `json:"from,omitempty"`
	To       string   `json:"to,omitempty"`
	Settings []string `json:"settings,omitempty"`
}

func differences(changes []generation.Change) []difference {
	out := []difference{}
	for _, c := range changes {
		out = append(out, difference{
			Kind: c.Kind, Name: c.Name, From: c.From.Reference(), To: c.To.Reference(), Settings: c.Settings(),
		})
	}
	return out
}

// entryOf returns one of all generations, which are sorted, newest first, without its packages.
func entryOf(all []generation.Generation, i int) entry {
	g := all[i]
	e := entry{
		Number: g.Number, Healthy: g.Healthy, Time: g.Time, By: g.By, Why: g.Why, Transactions: g.Transactions,
	}
	var before []generation.Package
	if i+1 < len(all) {
		before = all[i+1].Packages
	}
	if g.Number == 1 || i+1 < len(all) {
		e.changes = generation.Changes(before, g.Packages)
		e.Changes = differences(e.changes)
	}
	return e
}

// shown is the number of changes of a generation in a table.
const shown = 3

// List returns the table of generations, newest first.
func List(all []generation.Generation) view.List {
	list := []entry{}
	for i := range all {
		list = append(list, entryOf(all, i))
	}
	out := view.List{Value: list, Table: view.Table{
		Header: []string{"GENERATION", "HEALTHY", "AGE", "BY", "CHANGES"}, Least: []string{"CHANGES", "BY"},
	}}
	for i, e := range list {
		out.Names = append(out.Names, Prefix+strconv.FormatInt(e.Number, 10))
		changes := wording.Count(len(all[i].Packages), "package")
		if e.changes != nil && (e.Number > 1 || len(e.changes) <= shown) {
			changes = wording.Few(texts(e.changes), shown, ", ")
		}
		out.Table.Rows = append(out.Table.Rows, []string{
			strconv.FormatInt(e.Number, 10), yes(e.Healthy), terminal.Age(e.Time, time.Now()),
			strings.Join(e.By, ", "), changes,
		})
	}
	return out
}

func yes(is bool) string { return map[bool]string{true: "True", false: "False"}[is] }

func texts(changes []generation.Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.String())
	}
	return out
}

// Show prints a generation with its packages.
func Show(w io.Writer, f view.OutputFlag, all []generation.Generation, number int64) error {
	g, err := Find(all, number)
	if err != nil {
		return err
	}
	e := entryOf(all, slices.IndexFunc(all, func(other generation.Generation) bool { return other.Number == number }))
	e.Packages = g.Packages
	return f.Print(w, e, func(w io.Writer) {
		line := func(name, value string) {
			if value != "" {
				fmt.Fprintf(w, "%-14s%s\n", name+":", terminal.Safe(value))
			}
		}
		line("Generation", strconv.FormatInt(g.Number, 10))
		line("Time", g.Time.Format(time.RFC3339))
		line("Healthy", yes(g.Healthy))
		line("By", strings.Join(g.By, ", "))
		line("Why", strings.Join(g.Why, ", "))
		line("Transaction", strings.Join(g.Transactions, ", "))
		if len(e.changes) > 0 {
			fmt.Fprintln(w, "Changes:")
			for _, c := range e.changes {
				fmt.Fprintln(w, "  "+terminal.Safe(c.String()))
			}
		}
		fmt.Fprintln(w, "Packages:")
		for _, p := range g.Packages {
			fmt.Fprintf(w, "  %s %s %s\n", terminal.Safe(p.Short()), terminal.Safe(p.Spec.Package), p.Digest.Short())
		}
		fmt.Fprintf(w, "\nReturn to it with `xpkg rollback --to-generation %d`.\n", g.Number)
	})
}

// Differ prints the differences between two generations, in a format: json, yaml, markdown, or text. It reports whether
// there are any.
func Differ(w io.Writer, format string, all []generation.Generation, from, to int64) (bool, error) {
	a, err := Find(all, from)
	if err != nil {
		return false, err
	}
	b, err := Find(all, to)
	if err != nil {
		return false, err
	}
	changes := generation.Changes(a.Packages, b.Packages)
	value := map[string]any{"from": from, "to": to, "changes": differences(changes)}
	bullet, isMarkdown := "  ", format == "markdown"
	if isMarkdown {
		format, bullet = "", "- "
	}
	return len(changes) > 0, view.OutputFlag{Output: view.ObjectFormat(format)}.Print(w, value, func(w io.Writer) {
		if len(changes) == 0 {
			fmt.Fprintln(w, "No differences.")
			return
		}
		fmt.Fprintf(w, "From generation %d to %d:\n", from, to)
		if isMarkdown {
			fmt.Fprintln(w)
		}
		for _, text := range texts(changes) {
			if text = terminal.Safe(text); isMarkdown {
				text = terminal.EscapeMarkdown(text)
			}
			fmt.Fprintln(w, bullet+text)
		}
	})
}
