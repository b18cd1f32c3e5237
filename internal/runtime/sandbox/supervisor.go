package sandbox

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/filetree"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/logs"
)

const (
	programsFolder = "programs"
	// supervisorLock is held by the supervisor of a folder.
	supervisorLock = "supervisor.lock"

	// defaultGrace is the default period between SIGTERM and SIGKILL.
	defaultGrace = 10 * time.Second
	// defaultWatch is the default interval for checking the limits of a runtime.
	defaultWatch = 500 * time.Millisecond
)

// Isolation is the level of isolation of a runtime from the host.
type Isolation int

// The isolations, the strongest first. If the machine forbids one, the supervisor uses the next.
const (
	// Namespaces isolates the root, the users and the processes.
	Namespaces Isolation = iota
	// Chroot isolates the root and runs as another user. It requires a supervisor with
	// root privileges.
	Chroot
	// None runs an ordinary child process.
	None
)

// Options configure a supervisor.
type Options struct {
	// Dir is the folder of the files and logs of runtimes. It is created if missing, and
	// used by one supervisor at a time.
	Dir string
	// Executable is run with Arguments to start a runtime. It must call [Init]. If both
	// are empty, they default to the executable of this process, even if its file was
	// replaced meanwhile, and [InitCommand].
	Executable string
	Arguments  []string
	// Images provides the roots of images.
	Images Images
	// Log receives a record for each start and each exit. Nil discards them.
	Log *slog.Logger
	// Isolation is the strongest isolation to try.
	Isolation Isolation
	// Grace is the period between SIGTERM and SIGKILL. Zero means defaultGrace.
	Grace time.Duration
	// LogSize is the size in bytes at which a log is rotated. Zero means logs.DefaultSize.
	LogSize int64
	// WatchEvery is the interval for checking the limits of runtimes. Zero means 500 ms.
	WatchEvery time.Duration
	// Now returns the time. Nil means the system clock.
	Now func() time.Time
	// Sleep waits between two starts. It must return an error if the context ends first. Nil means
	// the system clock.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (o Options) withDefaults() Options {
	if o.Executable == "" {
		o.Executable = "/proc/self/exe"
	}
	if o.Arguments == nil {
		o.Arguments = []string{InitCommand}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.LogSize == 0 {
		o.LogSize = logs.DefaultSize
	}
	if o.WatchEvery == 0 {
		o.WatchEvery = defaultWatch
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return o
}

// Supervisor runs package runtimes. It is safe for concurrent use.
type Supervisor struct {
	opts     Options
	lock     *flock.Flock
	launcher *launcher
	changes  *changes

	// closing is canceled by Close, which ends every wait of Ensure.
	closing context.Context // The supervisor's lifetime.
	close   context.CancelCauseFunc

	mu       sync.Mutex
	programs map[string]*program
}

// errClosed is the cause of errors from a closed supervisor.
var errClosed = errors.New("the supervisor is closed")

// New returns a supervisor of the folder, without any runtimes. It removes the files of a
// killed supervisor, whose runtimes ended with it. It fails with ProgramsInUse if another
// supervisor uses the folder, and with ProgramsUnsupported on systems other than Linux.
func New(o Options) (*Supervisor, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, ErrProgramFolder.New(err, "cannot find the folder %s", o.Dir)
	}
	o.Dir = dir
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, ErrProgramFolder.New(err, "cannot create the folder %s", o.Dir)
	}
	lock := flock.New(filepath.Join(o.Dir, supervisorLock), flock.SetPermissions(0o600))
	switch mine, err := lock.TryLock(); {
	case err != nil:
		return nil, ErrProgramFolder.New(err, "cannot lock the folder %s", o.Dir)
	case !mine:
		return nil, ErrProgramsInUse.New(nil, "the folder %s is in use by another supervisor", o.Dir)
	}
	if err := prepare(o.Dir); err != nil {
		return nil, errors.Join(ErrProgramFolder.New(err, "cannot prepare the folder %s", o.Dir), lock.Close())
	}
	s := &Supervisor{opts: o, lock: lock, launcher: newLauncher(o), changes: newChanges(), programs: map[string]*program{}}
	s.closing, s.close = context.WithCancelCause(context.Background())
	return s, nil
}

// prepare creates the empty folder of programs, and removes the oldest logs.
func prepare(dir string) error {
	programs := filepath.Join(dir, programsFolder)
	if err := filetree.Remove(programs); err != nil {
		return err
	}
	// The files of runtimes contain secrets.
	err := os.Mkdir(programs, 0o700)
	return errors.Join(err, logs.Prune(dir))
}

// Ensure runs a runtime as specified. It starts a runtime that is not running, and restarts a
// running one if anything but the content of files has changed. It fetches a missing image first,
// while the current runtime keeps running.
//
// Ensure returns after the first start. From then on the supervisor restarts the runtime whenever
// it exits. If Ensure fails because of the spec or the image, nothing has changed. If the first
// start fails, it is retried with backoff.
func (s *Supervisor) Ensure(ctx context.Context, spec Spec) error {
	if err := spec.check(); err != nil {
		return err
	}
	p, leave, err := s.enter(ctx, spec.Name)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.closing, func() { cancel(errClosed) })()
	return p.ensure(ctx, spec.clone())
}

// reservedFor returns a function that reports whether a port is one on which another runtime listens, or will listen
// when it is started again.
func (s *Supervisor) reservedFor(name string) func(port int) bool {
	return func(port int) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for other, p := range s.programs {
			if other != name && p.run != nil && slices.Contains(slices.Collect(maps.Values(p.run.spec.Ports)), port) {
				return true
			}
		}
		return false
	}
}

// Stop ends a runtime with its descendants, and returns when they have exited. It sends
// SIGTERM, and SIGKILL after the grace period or when the context is done. It is not an
// error if the runtime is not running.
func (s *Supervisor) Stop(ctx context.Context, name string) error {
	p, leave, err := s.enter(ctx, name)
	if err != nil {
		return err
	}
	defer leave()
	return p.stop(ctx)
}

// enter locks the program with a name. The caller must call leave.
func (s *Supervisor) enter(ctx context.Context, name string) (_ *program, leave func(), err error) {
	s.mu.Lock()
	p, known := s.programs[name]
	if !known {
		p = &program{supervisor: s, name: name, turn: make(chan struct{}, 1)}
		s.programs[name] = p
	}
	p.wanted++
	s.mu.Unlock()
	leave = func() {
		<-p.turn
		s.forget(p)
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		s.forget(p)
		return nil, nil, context.Cause(ctx)
	}
	if s.closing.Err() != nil {
		leave()
		return nil, nil, ErrProgramStart.New(errClosed, "cannot change the program %s", name)
	}
	return p, leave, nil
}

// forget removes the state of a name that is not in use and not running.
func (s *Supervisor) forget(p *program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.wanted--
	if p.wanted == 0 && p.run == nil {
		delete(s.programs, p.name)
	}
}

// Status returns the status of a runtime, and false if no runtime with that name was started.
func (s *Supervisor) Status(name string) (Status, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.programs[name]
	if !ok || p.run == nil {
		return Status{}, false
	}
	return p.run.status, true
}

// Changes returns a channel with the names of runtimes whose status has changed. Several changes of
// a runtime before a receive are delivered once, and none is lost. All callers share the channel,
// which Close closes.
func (s *Supervisor) Changes() <-chan string { return s.changes.out }

// Logs reads the log of a runtime; see [logs.Open].
func (s *Supervisor) Logs(ctx context.Context, name string, follow bool, tail int) (io.ReadCloser, error) {
	return logs.Open(ctx, s.opts.Dir, name, follow, tail)
}

// Close ends all runtimes, as Stop does, and unlocks the folder. A closed supervisor
// starts nothing.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	if s.closing.Err() != nil {
		s.mu.Unlock()
		return nil
	}
	s.close(errClosed)
	var all []*program
	for _, p := range s.programs {
		p.wanted++
		all = append(all, p)
	}
	s.mu.Unlock()
	errs := make([]error, len(all))
	var stopping sync.WaitGroup
	for i, p := range all {
		stopping.Go(func() {
			p.turn <- struct{}{}
			errs[i] = p.stop(context.Background())
			<-p.turn
			s.forget(p)
		})
	}
	stopping.Wait()
	s.launcher.close()
	s.changes.close()
	return errors.Join(errors.Join(errs...), s.lock.Close())
}
