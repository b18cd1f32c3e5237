package packagecache

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

type cachePruneCmd struct {
	MaxSize   flags.Amount  `placeholder:"SIZE" help:"Remove the least recently used packages until the cache has at most this size, such as 2Gi."`
	OlderThan time.Duration `placeholder:"DURATION" help:"Remove packages that were not used for this time, such as 720h."`
	All       bool          `help:"Also remove packages that were added by name. Without another flag, remove every package that no control plane uses."`
	Forget    []string      `placeholder:"OWNER" help:"Release the packages of a control plane that no longer exists. xpkg cache ls shows the names."`
	DryRun    bool          `help:"List the packages that would be removed without removing them."`
	flags.CacheFlags
	view.OutputFlag
}

// Run removes packages from the package cache.
func (c *cachePruneCmd) Run(env *terminal.Env) (err error) {
	if c.DryRun && len(c.Forget) > 0 {
		return terminal.ErrUsage.New(nil, "--forget and --dry-run cannot be used together")
	}
	p, err := c.OpenExisting()
	if err != nil {
		return err
	}
	defer terminal.Close(&err, p)
	unknown, err := p.Forget(env.Context, c.Forget...)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return terminal.ErrUsage.New(
			nil, "no control plane %s uses the package cache %s", strings.Join(unknown, " or "), p.Dir(),
		).
			WithDo("`xpkg cache ls --output wide --cache-dir %s` shows the names of control planes.", wording.ShellWord(p.Dir()))
	}
	task := terminal.StartTask(env.Stderr, "pruning the package cache")
	defer task.End()
	report, err := p.Prune(env.Context, cache.PruneOptions{
		MaxBytes: int64(c.MaxSize), OlderThan: c.OlderThan, All: c.All, DryRun: c.DryRun,
	})
	if err != nil {
		return err
	}
	task.End()
	return c.Print(env.Stdout, report, func(w io.Writer) {
		c.write(w, p.Dir(), report, withOrigins(env.Context, p, report.Removed))
	})
}

func (c *cachePruneCmd) write(w io.Writer, dir string, r cache.Report, removed []cachedEntry) {
	verb, rest := "removed", "remain"
	if c.DryRun {
		verb, rest = "would remove", "would remain"
	}
	if len(r.Removed) > 0 {
		writeEntries(w, view.ListOutputFlag{}, removed)
		writePartial(w, view.ListOutputFlag{}, r.Removed)
		fmt.Fprintln(w)
	}
	kept := ""
	if r.Recent > 0 {
		kept = fmt.Sprintf(" (%s used within the last ten minutes)", wording.Count(r.Recent, "package"))
	}
	fmt.Fprintf(
		w, "%s: %s %s (%s); %s %s%s\n", dir, verb, wording.Count(len(r.Removed), "package"), terminal.Size(r.Freed),
		terminal.Size(max(0, r.Bytes-r.Freed)), rest, kept,
	)
}
