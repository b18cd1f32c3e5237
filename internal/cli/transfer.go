package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// transferFlags are the flags of commands that read or write packages in
// registries and archives.
type transferFlags struct {
	registryFlags
	limitFlags
	verboseFlag
}

// verboseFlag is the flag that scripts of the field give to every command.
type verboseFlag struct {
	Verbose bool `help:"Say what is read and written."`
}

// task is one thing that a command does, and that may take long. It is told on a
// terminal from the start, and elsewhere when it takes over a second.
type task struct {
	*progress
	what  string
	timer *time.Timer
}

// begin starts to tell of a task.
func begin(w io.Writer, what string, args ...any) *task {
	t := &task{progress: newProgress(w), what: fmt.Sprintf(what, args...)}
	if t.tty {
		t.say("%s", t.what)
		return t
	}
	t.timer = time.AfterFunc(time.Second, func() { t.say("%s", t.what) })
	return t
}

// end ends it; once more does no harm.
func (t *task) end() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.progress.end()
}

// warn writes a warning of a registry above the progress.
func (t *task) warn(registry, message string) {
	fmt.Fprintf(t, "warning from registry %s: %s\n", registry, message)
}

// mover makes the means to move packages between places.
func (f transferFlags) mover(env *Env, t *task, places ...place) (mover, error) {
	opts, err := f.options(f.imageLimits(), f.tell(t), registries(places...)...)
	if err != nil {
		return mover{}, err
	}
	opts.Warn = t.warn
	return mover{env: env, remote: remote.New(opts), limits: f.imageLimits(), archive: f.archiveLimit()}, nil
}

// tell says how far content has moved.
func (f transferFlags) tell(task *task) func(remote.Transfer) {
	return func(t remote.Transfer) {
		if task.tty {
			task.say("%s: %s of %s", task.what, size(t.Done), size(t.Total))
		}
		if f.Verbose && t.Done == t.Total {
			word := "read"
			if t.Upload {
				word = "sent"
			}
			fmt.Fprintf(task, "%s %s, %s\n", word, t.Digest, size(t.Total))
		}
	}
}

// withPackage opens a place, finds the manifest of the package in it, and closes
// the place when use is done.
func (f transferFlags) withPackage(env *Env, from place, platform string, use func(m mover, o *opened, manifest oci.Manifest) error) (err error) {
	want, err := parsePlatform(platform)
	if err != nil {
		return err
	}
	p := begin(env.Stderr, "reading %s", from)
	defer p.end()
	m, err := f.mover(env, p, from)
	if err != nil {
		return err
	}
	defer m.remote.Close()
	o, err := m.open(env.Context, from)
	if err != nil {
		return err
	}
	defer closing(&err, o)
	manifest, err := oci.FindManifest(env.Context, o, want, m.limits)
	if err != nil {
		return err
	}
	return use(m, o, manifest)
}
