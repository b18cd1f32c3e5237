package packagecache

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

type cacheAddCmd struct {
	File string   `arg:"" name:"file" help:"Package to add: a .xpkg file or another archive, the folder of an OCI layout, or - for standard input."`
	As   []string `placeholder:"NAME|REFERENCE" help:"Value of spec.package for this package: a name such as mycoolpkg, or a full reference. Can be given more than once. Default is the file name without its extension."`
	flags.CacheFlags
	CacheLimit flags.Amount `placeholder:"SIZE" env:"XPKG_CACHE_LIMIT" config:"" help:"Maximum size of the package cache. Default is the limit of the manager that uses it."`
}

// Run adds a package to the package cache.
func (c *cacheAddCmd) Run(env *terminal.Env) (err error) {
	p, err := c.Open(c.CacheLimit)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, p)
	task := terminal.StartTask(env.Stderr, "reading %s", c.File)
	defer task.End()
	e, err := c.add(env, p)
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

// add adds the package. A stream is read completely first, and has no default name.
func (c *cacheAddCmd) add(env *terminal.Env, p *cache.Cache) (_ cache.Entry, err error) {
	path := strings.TrimPrefix(c.File, location.LayoutPrefix)
	if !location.IsStream(path) {
		e, err := p.Add(env.Context, path, c.As...)
		if ref, invalid := flags.ParseReference(c.File); invalid == nil && errors.Is(err, archive.ErrArchiveNotFound) {
			f := errcode.From(err)
			return e, f.WithDo("%s is no file. Pull the package first, with `xpkg pull %s -o package.xpkg`, and add it with `xpkg cache add package.xpkg --as %s`.", c.File, wording.ShellWord(c.File), wording.ShellWord(ref.String()))
		}
		return e, err
	}
	if len(c.As) == 0 {
		return cache.Entry{}, terminal.ErrUsage.New(nil, "the package from %s has no name", c.File).
			WithDo("Name it, for example with `xpkg cache add %s --as registry.example.com/acme/boats:v1.0.0`.", wording.ShellWord(c.File))
	}
	var limits flags.LimitFlags
	a, err := location.OpenArchive(env, path, limits.ArchiveLimit(), limits.ImageLimits())
	if err != nil {
		return cache.Entry{}, err
	}
	defer terminal.Close(&err, a)
	return p.AddArtifact(env.Context, a, c.File, c.As...)
}
