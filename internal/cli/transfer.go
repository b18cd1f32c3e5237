package cli

import (
	"fmt"
	"time"

	"github.com/xpkg-dev/xpkg/internal/oci"
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

// mover makes the means to move packages between places. What is done is told on
// standard error: on a terminal from the start, elsewhere when it takes over a
// second.
func (f transferFlags) mover(env *Env, p *progress, what string, places ...place) (mover, error) {
	if p.tty {
		p.say("%s", what)
	}
	remote, err := f.remote(f.imageLimits(), f.tell(env, p, what), registries(places...)...)
	return mover{env: env, remote: remote, limits: f.imageLimits(), archive: f.archiveLimit()}, err
}

// tell says how far content has moved.
func (f transferFlags) tell(env *Env, p *progress, what string) func(oci.Transfer) {
	start := time.Now()
	return func(t oci.Transfer) {
		switch {
		case p.tty:
			p.say("%s: %s of %s", what, size(t.Done), size(t.Total))
		case time.Since(start) > time.Second:
			p.say("%s", what)
		}
		if f.Verbose && t.Done == t.Total {
			word := "read"
			if t.Upload {
				word = "sent"
			}
			fmt.Fprintf(p, "%s %s, %s\n", word, t.Digest, size(t.Total))
		}
	}
}
