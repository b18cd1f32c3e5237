package up

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// defaultStartTimeout is the default of Options.StartTimeout. A start takes about five seconds, and
// several times as long on a busy machine.
const defaultStartTimeout = 3 * time.Minute

var errStartTimeout = errors.New("the start took too long")

// deadline limits the duration of a start.
type deadline struct {
	// ctx ends with the deadline.
	ctx     context.Context
	stop    context.CancelFunc
	dir     *datadir.Dir
	log     *logFile
	timeout time.Duration

	mu sync.Mutex
	// last is the last exit or problem of the manager.
	last error
}

// newDeadline starts the deadline of a start. The log explains the failure of the start.
func newDeadline(ctx context.Context, o Options, dir *datadir.Dir, log *logFile) *deadline {
	ctx, stop := context.WithTimeoutCause(ctx, o.StartTimeout, errStartTimeout)
	return &deadline{ctx: ctx, stop: stop, dir: dir, log: log, timeout: o.StartTimeout}
}

// observe returns a function that records the failures of the manager and calls progress.
func (d *deadline) observe(progress func(Event)) func(Event) {
	return func(e Event) {
		if err := cmp.Or(e.Err, e.Cause); err != nil {
			d.mu.Lock()
			d.last = err
			d.mu.Unlock()
		}
		progress(e)
	}
}

// explain returns ErrNotReady, with the reason and a fix, for a start that took too long. It
// returns other errors unchanged.
func (d *deadline) explain(err error, what string) error {
	if !errors.Is(err, errStartTimeout) {
		return err
	}
	d.mu.Lock()
	why := d.last
	d.mu.Unlock()
	if lines := d.log.lastLines(); why == nil && lines != "" {
		why = fmt.Errorf("the log ends with:\n%s", lines)
	}
	dir := wording.ShellWord(d.dir.Path)
	failure := ErrNotReady.New(why, "the control plane in %s was not ready within %s: %s", d.dir.Path, d.timeout, what)
	if known := (*errcode.Error)(nil); errors.As(why, &known) && known.Do != "" {
		return failure.WithDo("%s", known.Do)
	}
	return failure.WithDo(
		"Read %s. On a busy machine, allow more time: `%s --start-timeout %s`. If the log reports a damaged database, "+
			"run `mv %s/etcd %s/etcd.damaged`, start again, and restore your objects from a backup.", d.log.Name(),
		datadir.StartCommand(d.dir.Path), 4*d.timeout, dir, dir)
}
