package cli

import (
	"fmt"
	"io"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

type cacheVerifyCmd struct {
	cacheFlags
	outputFlag
}

// Run compares everything in the package cache with its digest. It fails when
// something is damaged or missing, so that scripts can ask.
func (c *cacheVerifyCmd) Run(env *Env) (err error) {
	p, err := c.open(0)
	if err != nil {
		return err
	}
	defer closing(&err, p)
	task := begin(env.Stderr, "reading the package cache")
	defer task.end()
	report, err := p.Verify(env.Context)
	if err != nil {
		return err
	}
	task.end()
	if err := c.print(env.Stdout, report, func(w io.Writer) error { return writeVerified(w, p.Dir(), report) }); err != nil {
		return err
	}
	switch {
	case len(report.Damaged) > 0:
		return exitCode(errcode.Untrusted.Exit)
	case len(report.Missing) > 0:
		return exitCode(errcode.NotFound.Exit)
	}
	return nil
}

func writeVerified(w io.Writer, dir string, r cache.Report) error {
	state := "all of it is sound"
	if n := len(r.Damaged) + len(r.Missing); n > 0 {
		state = fmt.Sprintf("%d damaged, %d missing", len(r.Damaged), len(r.Missing))
	}
	if _, err := fmt.Fprintf(w, "%s: %d files, %s, %s\n", dir, r.Entries, size(r.Bytes), state); err != nil {
		return err
	}
	for _, f := range r.Damaged {
		if _, err := fmt.Fprintf(w, "damaged and put aside: %s%s\n", f.What, whose(f)); err != nil {
			return err
		}
	}
	for _, f := range r.Missing {
		if _, err := fmt.Fprintf(w, "missing: %s%s\n", f.What, whose(f)); err != nil {
			return err
		}
	}
	return nil
}

// whose says which packages have a fault.
func whose(f cache.Fault) string {
	var text string
	for _, name := range f.Names {
		text += ", added as " + safe(name)
	}
	for _, owner := range f.InUse {
		text += ", used by " + safe(owner)
	}
	return text
}
