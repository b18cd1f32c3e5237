package packagecache

import (
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

type cacheAddCmd struct {
	File string   `arg:"" name:"file" help:"Package to add: a .xpkg file or another archive, or the folder of an OCI layout."`
	As   []string `placeholder:"NAME|REFERENCE" help:"Value of spec.package for this package: a name such as mycoolpkg, or a full reference. Can be given more than once. Default is the file name without its extension."`
	flags.CacheFlags
	CacheLimit flags.Amount `placeholder:"SIZE" env:"XPKG_CACHE_LIMIT" help:"Maximum size of the package cache. Default is the limit of the manager that uses it."`
}

// Run puts a package into the package cache.
func (c *cacheAddCmd) Run(env *terminal.Env) (err error) {
	p, err := c.Open(c.CacheLimit)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, p)
	task := terminal.StartTask(env.Stderr, "reading %s", c.File)
	defer task.End()
	e, err := p.Add(env.Context, strings.TrimPrefix(c.File, location.LayoutPrefix), c.As...)
	if err != nil {
		return err
	}
	task.End()
	for _, name := range e.Names {
		if _, err := fmt.Fprintf(env.Stdout, "%s: %s %s, %s\n", terminal.Safe(name), e.Kind, terminal.Safe(e.Package), e.Digest); err != nil {
			return err
		}
	}
	return nil
}
