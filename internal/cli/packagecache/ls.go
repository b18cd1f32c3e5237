package packagecache

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

type cacheLsCmd struct {
	flags.CacheFlags
	view.ListOutputFlag
}

// cacheView is the output of the command.
type cacheView struct {
	Dir string `json:"dir"`
	// Bytes is the total size of the package cache.
	Bytes    int64         `json:"bytes"`
	Packages []cachedEntry `json:"packages"`
}

// cachedEntry is a package in the package cache.
type cachedEntry struct {
	cache.Entry
	// Origins are the references under which the package was fetched from registries.
	Origins []string `json:"origins,omitempty"`
	// Versions are the tags of its origins and of its names, lowest first.
	Versions []string `json:"versions,omitempty"`
}

// withOrigins returns entries with the references under which they were fetched.
func withOrigins(ctx context.Context, p *cache.Cache, entries []cache.Entry) []cachedEntry {
	source := fetch.NewSource(fetch.Options{Store: p.Store().Peek()}) // A listing is not a use.
	defer source.Close()
	out := make([]cachedEntry, len(entries))
	for i, e := range entries {
		out[i].Entry = e
		var tags []string
		for _, ref := range source.Origins(ctx, e.Digest) {
			out[i].Origins = append(out[i].Origins, ref.String())
			tags = append(tags, ref.Tag)
		}
		for _, name := range e.Names {
			if ref, err := oci.ParseReference(name, oci.ParseOptions{}); err == nil {
				tags = append(tags, ref.Tag)
			}
		}
		tags = slices.DeleteFunc(tags, func(tag string) bool { return tag == "" })
		slices.SortFunc(tags, func(a, b string) int {
			v, w := version.Parse(a), version.Parse(b)
			return cmp.Or(v.Compare(&w), cmp.Compare(a, b))
		})
		out[i].Versions = slices.Compact(tags)
	}
	return out
}

// Run lists the packages in the package cache.
func (c *cacheLsCmd) Run(env *terminal.Env) (err error) {
	p, err := c.OpenExisting()
	if err != nil {
		return err
	}
	defer terminal.Close(&err, p)
	task := terminal.StartTask(env.Stderr, "reading the package cache")
	defer task.End()
	view := cacheView{Dir: p.Dir()}
	entries, err := p.List(env.Context)
	if err != nil {
		return err
	}
	view.Packages = withOrigins(env.Context, p, entries)
	if view.Bytes, _, err = p.Size(env.Context); err != nil {
		return err
	}
	task.End()
	var names []string
	for _, e := range view.Packages {
		names = append(names, entryName(e.Entry))
	}
	return c.PrintText(env.Stdout, view, names, func(w io.Writer) {
		if len(view.Packages) == 0 {
			fmt.Fprintf(w, "The package cache %s is empty.\n", view.Dir)
			return
		}
		fmt.Fprintf(env.Stderr, "note: %s has %s\n", view.Dir, terminal.Size(view.Bytes))
		writeEntries(w, c.ListOutputFlag, view.Packages)
		writePartial(env.Stderr, c.ListOutputFlag, entries)
	})
}

// writePartial writes how many packages the table does not list because only parts of them were read.
func writePartial(w io.Writer, f view.ListOutputFlag, entries []cache.Entry) {
	var size int64
	n := 0
	for _, e := range entries {
		if e.Partial {
			n++
			size += e.Size
		}
	}
	if n == 0 || f.Output == "wide" {
		return
	}
	fmt.Fprintf(
		w,
		"note: parts of %s (%s), as indexes and solutions of dependencies read them; -o wide of `xpkg cache ls` lists them\n",
		wording.Count(n, "package"), terminal.Size(size),
	)
}

// typeOf returns the kind of a package, or what else an entry is.
func typeOf(e cache.Entry) string {
	switch {
	case e.Partial:
		return "partial"
	case e.Type == catalog.ArtifactType:
		return "index"
	}
	return cmp.Or(e.Kind, e.Type, "-")
}

// writeEntries writes a table of packages, and the errors of unreadable ones after it.
func writeEntries(w io.Writer, f view.ListOutputFlag, entries []cachedEntry) {
	table := view.Table{
		Header:     []string{"NAME", "KIND", "PACKAGE", "VERSION", "DIGEST", "SIZE", "LAST USED", "IN USE BY"},
		WideHeader: []string{"FULL DIGEST", "OWNER", "FETCHED FROM"}, Least: []string{"IN USE BY", "PACKAGE", "LAST USED"},
	}
	for _, e := range entries {
		if e.Partial && f.Output != "wide" {
			continue
		}
		table.Rows = append(table.Rows, []string{
			orDash(strings.Join(append(e.Names, e.Files...), ", ")), typeOf(e.Entry), orDash(e.Package),
			orDash(strings.Join(e.Versions, ", ")), orDash(e.Digest.Short()), terminal.Size(e.Size),
			terminal.Age(e.LastUsed, time.Now()), orDash(strings.Join(e.Users, ", ")),
			e.Digest.String(), orDash(strings.Join(e.InUse, ", ")), orDash(strings.Join(e.Origins, ", ")),
		})
	}
	f.Selected(table).Write(w)
	var plain []cache.Entry
	for _, e := range entries {
		plain = append(plain, e.Entry)
	}
	writeProblems(w, plain)
	writeMissing(w, plain)
}

// writeMissing writes the missing parts of incomplete packages that can be read.
func writeMissing(w io.Writer, entries []cache.Entry) {
	const named = 3
	for _, e := range entries {
		if e.Problem != "" || len(e.Missing) == 0 {
			continue
		}
		fmt.Fprintf(w,
			"\n%s is incomplete: %s missing. An install from a registry downloads it again; add other packages again with `xpkg cache add`.\n",
			terminal.Safe(entryName(e)),
			wording.Few(e.Missing, named, ", ")+map[bool]string{true: " is", false: " are"}[len(e.Missing) == 1])
	}
}

// entryName returns the names of a package, or its digest if it has none.
func entryName(e cache.Entry) string {
	return cmp.Or(strings.Join(slices.Concat(e.Names, e.Files), ", "), e.Digest.String())
}

// writeProblems writes the reasons why some of the entries cannot be read.
func writeProblems(w io.Writer, entries []cache.Entry) {
	for _, e := range entries {
		if e.Problem == "" {
			continue
		}
		fmt.Fprintf(w, "\n%s cannot be read: %s\n", terminal.Safe(entryName(e)), terminal.Safe(e.Problem))
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// References returns the references in the package cache. It does not create a missing cache.
func References(ctx context.Context, f flags.CacheFlags) (out []string, err error) {
	if !f.Exists() {
		return nil, nil
	}
	p, err := f.Open(0)
	if err != nil {
		return nil, err
	}
	defer terminal.Close(&err, p)
	entries, err := p.List(ctx)
	for _, e := range entries {
		for _, name := range e.Names {
			if strings.Contains(name, "/") {
				out = append(out, name)
			}
		}
	}
	return out, err
}
