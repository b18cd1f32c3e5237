package cli

import (
	"fmt"
	"strings"
)

type cacheAddCmd struct {
	File string   `arg:"" name:"file" help:"Package to add: a .xpkg file or another archive, or the folder of an OCI layout."`
	As   []string `placeholder:"NAME|REFERENCE" help:"What spec.package will call it: a name such as mycoolpkg, or a full reference. Can be given several times. Default is the name of the file without its ending."`
	cacheFlags
	CacheLimit amount `placeholder:"SIZE" env:"XPKG_CACHE_LIMIT" help:"Bytes that the package cache may have. Default is the limit of the manager that uses it."`
}

// Run puts a package into the package cache.
func (c *cacheAddCmd) Run(env *Env) (err error) {
	p, err := c.open(c.CacheLimit)
	if err != nil {
		return err
	}
	defer closing(&err, p)
	task := begin(env.Stderr, "reading %s", c.File)
	defer task.end()
	e, err := p.Add(env.Context, strings.TrimPrefix(c.File, layoutPrefix), c.As...)
	if err != nil {
		return err
	}
	task.end()
	for _, name := range e.Names {
		if _, err := fmt.Fprintf(env.Stdout, "%s: %s %s, %s\n", safe(name), e.Kind, safe(e.Package), e.Digest); err != nil {
			return err
		}
	}
	return nil
}
