package dependencies

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/bundle"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

type bundleLoadCmd struct {
	File  string `arg:"" help:"Bundle that xpkg bundle save wrote."`
	To    string `arg:"" name:"prefix" help:"Destination: REGISTRY or REGISTRY/PREFIX. Everything keeps its full name below it: xpkg.crossplane.io/a/b becomes REGISTRY/PREFIX/xpkg.crossplane.io/a/b."`
	Lock  string `placeholder:"FILE" help:"Write the lock file of the bundle to this file."`
	Trust bool   `help:"Print the ImageConfigs that require signatures and the public keys in the bundle, too. A cluster with them trusts what the author of the bundle trusts."`
	flags.RegistryFlags
	flags.DataDirFlag
	Output view.ObjectFormat `short:"o" placeholder:"FORMAT" complete:"object-format" help:"Format of the ImageConfigs: yaml, json, or jsonpath= and a template. Default is yaml."`
}

// Run copies the content of a bundle, with unchanged digests.
func (c *bundleLoadCmd) Run(env *terminal.Env) (err error) {
	prefix, err := parsePrefix(c.To)
	if err != nil {
		return err
	}
	if folder := filepath.Dir(c.Lock); c.Lock != "" && !fileutil.IsStdout(c.Lock) {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return ErrLockWrite.New(err, "cannot write %s: %s is no folder", c.Lock, folder)
		}
	}
	b, err := bundle.Open(c.File)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, b)
	if err := c.load(env, b, prefix); err != nil {
		return err
	}
	if err := c.writeLock(env, b); err != nil {
		return err
	}
	kept, err := b.Configs()
	if err != nil {
		return err
	}
	files, err := content.ParseImageConfigs(c.File, kept)
	if err != nil {
		return err
	}
	if !c.Trust && len(files.Configs) > 0 {
		view.Notes(env.Stderr, "the bundle has ImageConfigs that require signatures, which --trust prints, too")
		files = origin.Files{}
	}
	files.Configs = append(rewriteConfigs(b.Entries(), prefix), files.Configs...)
	objects, err := plainFiles(files)
	if err != nil {
		return err
	}
	return view.PrintManifests(env.Stdout, c.Output, objects)
}

// load copies the content, and reports each artifact.
func (c *bundleLoadCmd) load(env *terminal.Env, b *bundle.Bundle, prefix string) error {
	p := terminal.StartTask(env.Stderr, "loading %s", c.File)
	defer p.End()
	c.Keychain = c.WriteKeychain()
	opts, err := c.Options(env.Context, oci.Limits{}, nil, strings.SplitN(prefix, "/", 2)[0])
	if err != nil {
		return err
	}
	var unchanged sync.Map
	opts.Warn = p.Warn
	opts.Unchanged = func(ref oci.Reference) { unchanged.Store(ref.Name()+ref.Tag, true) }
	client := remote.New(opts)
	defer client.Close()
	return b.Load(env.Context, bundle.LoadOptions{
		Client: client, Prefix: prefix, Done: func(to oci.Reference, done, total int) {
			_, isThere := unchanged.LoadAndDelete(to.Name() + to.Tag)
			switch {
			case to.Tag == "": // The artifacts without a name are many.
			case isThere:
				p.Unchanged(to)
			default:
				fmt.Fprintf(p, "pushed %s\n", terminal.Safe(to.String()))
			}
			p.Step(done, total, "")
		},
	})
}

// writeLock writes the lock file of the bundle.
func (c *bundleLoadCmd) writeLock(env *terminal.Env, b *bundle.Bundle) error {
	if c.Lock == "" {
		return nil
	}
	raw, err := b.Lock()
	if err != nil {
		return err
	}
	f, err := parseLock(c.File, raw)
	if err != nil {
		return err
	}
	return writeLock(env, c.Lock, f)
}
