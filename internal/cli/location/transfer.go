package location

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// TransferFlags are the flags of commands that read or write packages in
// registries and archives.
type TransferFlags struct {
	flags.RegistryFlags
	flags.LimitFlags
}

// NewTransfer returns a Transfer between locations.
func (f TransferFlags) NewTransfer(env *terminal.Env, t *terminal.Task, places ...Location) (Transfer, error) {
	opts, err := f.Options(env.Context, f.ImageLimits(), f.reportEvent(env, t), registries(places...)...)
	if err != nil {
		return Transfer{}, err
	}
	opts.Warn, opts.Unchanged = t.Warn, t.Unchanged
	return Transfer{env: env, Remote: remote.New(opts), Limits: f.ImageLimits(), archive: f.ArchiveLimit()}, nil
}

// reportEvent reports the progress of transfers.
func (f TransferFlags) reportEvent(env *terminal.Env, task *terminal.Task) func(remote.Transfer) {
	return func(t remote.Transfer) {
		if task.Tty {
			task.Set("%s: %s of %s", task.What, terminal.Size(t.Done), terminal.Size(t.Total))
		}
		if env.Verbose && t.Done == t.Total {
			word := "read"
			if t.Upload {
				word = "sent"
			}
			fmt.Fprintf(task, "%s %s, %s\n", word, t.Digest, terminal.Size(t.Total))
		}
	}
}

// WithPackage opens a location, calls use with the manifest of its package, and closes the
// location.
func (f TransferFlags) WithPackage(
	env *terminal.Env, from Location, platform string, use func(m Transfer, o *Opened, manifest oci.Manifest) error,
) error {
	want, err := ParsePlatform(platform)
	if err != nil {
		return err
	}
	p := terminal.StartTask(env.Stderr, "reading %s", from)
	defer p.End()
	return f.WithOpened(env, p, from, nil, func(m Transfer, o *Opened) error {
		manifest, err := oci.FindManifest(env.Context, o, want, m.Limits)
		if err != nil {
			return err
		}
		return use(m, o, manifest)
	})
}

// Rewrite opens a location, writes the content and tag that edit returns to another location, and
// prints the new location. The line is printed to standard error if standard output carries the
// package.
func (f TransferFlags) Rewrite(
	env *terminal.Env, p *terminal.Task, from, to Location, edit func(m Transfer, o *Opened) (oci.Artifact, string, error),
) error {
	return f.WithOpened(env, p, from, []Location{to}, func(m Transfer, o *Opened) error {
		content, tag, err := edit(m, o)
		if err != nil {
			return err
		}
		digest, err := m.Write(env.Context, to, content, tag)
		p.End()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(to.Messages(env), terminal.Safe(to.At(digest)))
		return err
	})
}

// WithOpened opens a location, calls use, and closes the location. Use can also access the other
// locations.
func (f TransferFlags) WithOpened(
	env *terminal.Env, p *terminal.Task, from Location, others []Location, use func(m Transfer, o *Opened) error,
) (err error) {
	m, err := f.NewTransfer(env, p, append([]Location{from}, others...)...)
	if err != nil {
		return err
	}
	defer m.Remote.Close()
	o, err := m.Open(env.Context, from)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, o)
	return use(m, o)
}
