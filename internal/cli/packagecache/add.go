package packagecache

import (
	"errors"
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
func (c *cacheAddCmd) Run(env *terminal.Env) error {
	task := terminal.StartTask(env.Stderr, "reading %s", c.File)
	defer task.End()
	e, err := c.add(env)
	if err != nil {
		return err
	}
	task.End()
	for _, name := range e.Names {
		if err := env.Say("%s: %s %s, %s\n", name, e.Kind, e.Package, e.Digest); err != nil {
			return err
		}
	}
	return nil
}

// add adds the package. A stream is read completely first, and has no default name.
func (c *cacheAddCmd) add(env *terminal.Env) (_ cache.Entry, err error) {
	path := strings.TrimPrefix(c.File, location.LayoutPrefix)
	if location.IsStream(path) {
		return c.addStream(env, path)
	}
	err = c.check(env, path)
	var e cache.Entry
	if err == nil {
		e, err = c.addTo(func(p *cache.Cache) (cache.Entry, error) { return p.Add(env.Context, path, c.As...) })
	}
	if ref, invalid := flags.ParseReference(c.File); invalid == nil && errors.Is(err, archive.ErrArchiveNotFound) {
		f := errcode.From(err)
		return e, f.WithDo(
			"%s is no file. Pull the package first, with `xpkg pull %s -o package.xpkg`, and add it with `xpkg cache add package.xpkg --as %s`.",
			c.File, wording.ShellWord(c.File), wording.ShellWord(ref.String()),
		)
	}
	return e, err
}

// addStream adds the package that is read from a stream.
func (c *cacheAddCmd) addStream(env *terminal.Env, path string) (_ cache.Entry, err error) {
	if len(c.As) == 0 {
		return cache.Entry{}, terminal.ErrUsage.New(nil, "the package from %s has no name", c.File).
			WithDo(
				"Name it, for example with `xpkg cache add %s --as registry.example.com/acme/boats:v1.0.0`.",
				wording.ShellWord(c.File),
			)
	}
	var limits flags.LimitFlags
	a, err := location.OpenArchive(env, path, limits.ArchiveLimit(), limits.ImageLimits())
	if err != nil {
		return cache.Entry{}, err
	}
	defer terminal.Close(&err, a)
	if err := cache.Check(env.Context, a, limits.ImageLimits(), c.File, c.As...); err != nil {
		return cache.Entry{}, err
	}
	return c.addTo(func(p *cache.Cache) (cache.Entry, error) { return p.AddArtifact(env.Context, a, c.File, c.As...) })
}

// addTo opens the package cache for add.
func (c *cacheAddCmd) addTo(add func(*cache.Cache) (cache.Entry, error)) (_ cache.Entry, err error) {
	p, err := c.Open(c.CacheLimit)
	if err != nil {
		return cache.Entry{}, err
	}
	defer terminal.Close(&err, p)
	return add(p)
}

// check reads the package of a file before the package cache is created, so that a package that is refused leaves no
// folder.
func (c *cacheAddCmd) check(env *terminal.Env, path string) (err error) {
	if c.Exists() {
		return nil
	}
	var limits flags.LimitFlags
	a, err := location.OpenArchive(env, path, limits.ArchiveLimit(), limits.ImageLimits())
	if err != nil {
		return err
	}
	defer terminal.Close(&err, a)
	return cache.Check(env.Context, a, limits.ImageLimits(), c.File, c.As...)
}
