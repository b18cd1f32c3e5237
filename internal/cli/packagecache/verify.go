package packagecache

import (
	"fmt"
	"io"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

type cacheVerifyCmd struct {
	flags.CacheFlags
	view.OutputFlag
}

// Run verifies the digests of all content in the package cache. It fails if content is
// damaged or missing, so that scripts can check it.
func (c *cacheVerifyCmd) Run(env *terminal.Env) (err error) {
	p, err := c.OpenExisting()
	if err != nil {
		return err
	}
	defer terminal.Close(&err, p)
	task := terminal.StartTask(env.Stderr, "reading the package cache")
	defer task.End()
	report, err := p.Verify(env.Context)
	if err != nil {
		return err
	}
	task.End()
	if err := c.Print(env.Stdout, report, func(w io.Writer) { writeVerified(w, p.Dir(), report) }); err != nil {
		return err
	}
	switch {
	case len(report.Damaged) > 0:
		return terminal.ExitCode(errcode.Untrusted.Exit)
	case len(report.Missing) > 0:
		return terminal.ExitCode(errcode.NotFound.Exit)
	case len(report.Unreadable) > 0:
		return terminal.ExitCode(errcode.Invalid.Exit)
	}
	return nil
}

func writeVerified(w io.Writer, dir string, r cache.Report) {
	state := "OK"
	if len(r.Damaged)+len(r.Missing)+len(r.Unreadable) > 0 {
		state = fmt.Sprintf("%d damaged, %d missing, %d unreadable", len(r.Damaged), len(r.Missing), len(r.Unreadable))
	}
	fmt.Fprintf(w, "%s: %d files, %s, %s\n", dir, r.Entries, terminal.Size(r.Bytes), state)
	for _, f := range r.Damaged {
		fmt.Fprintf(w, "damaged, moved to quarantine: %s%s\n", f.What, ownerNames(f))
	}
	for _, f := range r.Missing {
		fmt.Fprintf(w, "missing: %s%s\n", f.What, ownerNames(f))
	}
	writeProblems(w, r.Unreadable)
}

// ownerNames returns the names and users of a damaged package.
func ownerNames(f cache.Fault) string {
	var text string
	for _, name := range f.Names {
		text += ", added as " + terminal.Safe(name)
	}
	for _, owner := range f.InUse {
		text += ", used by " + terminal.Safe(owner)
	}
	return text
}
