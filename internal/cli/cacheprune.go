package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

type cachePruneCmd struct {
	MaxSize   amount        `placeholder:"SIZE" help:"Remove what was not used for longest until the cache has no more than this, such as 2Gi."`
	OlderThan time.Duration `placeholder:"DURATION" help:"Remove what was not used for that time, such as 720h."`
	All       bool          `help:"Let packages go, too, that were added by name. Without another flag this removes all that no control plane uses."`
	Forget    []string      `placeholder:"OWNER" help:"Control plane that is gone: what it used is not in use any more. The names are those that xpkg cache ls shows."`
	DryRun    bool          `help:"Only tell what would be removed."`
	cacheFlags
	outputFlag
}

// Run removes packages from the package cache.
func (c *cachePruneCmd) Run(env *Env) (err error) {
	if c.DryRun && len(c.Forget) > 0 {
		return ErrUsage.New(nil, "--forget cannot be tried with --dry-run")
	}
	p, err := c.open(0)
	if err != nil {
		return err
	}
	defer closing(&err, p)
	for _, owner := range c.Forget {
		if err := p.Use(owner, nil); err != nil {
			return err
		}
	}
	task := begin(env.Stderr, "pruning the package cache")
	defer task.end()
	report, err := p.Prune(env.Context, cache.PruneOptions{MaxBytes: int64(c.MaxSize), OlderThan: c.OlderThan, All: c.All, DryRun: c.DryRun})
	if err != nil {
		return err
	}
	task.end()
	return c.print(env.Stdout, report, func(w io.Writer) error { return c.write(w, p.Dir(), report) })
}

func (c *cachePruneCmd) write(w io.Writer, dir string, r cache.Report) error {
	verb := "freed"
	if c.DryRun {
		verb = "would free"
	}
	if len(r.Removed) > 0 {
		if err := writeCacheEntries(w, r.Removed); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintf(w, "%s: %s %s with %s; %s are left\n", dir, verb, size(r.Freed), wording.Count(len(r.Removed), "package"), size(max(0, r.Bytes-r.Freed)))
	return err
}
