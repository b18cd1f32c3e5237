package process

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	programsFolder = "programs"
	logsFolder     = "logs"
	// supervisorLock is held by the supervisor of a folder.
	supervisorLock = "supervisor.lock"

	// DefaultGrace is how long a program has between SIGTERM and SIGKILL.
	DefaultGrace = 10 * time.Second
	// defaultWatch is how often the memory of a program is looked at.
	defaultWatch = 500 * time.Millisecond
)

// Isolation is how far programs are kept apart from the machine.
type Isolation int

// The isolations, the strongest first. A machine that forbids one gets the next.
const (
	// Namespaces give a program a root, users and processes of its own.
	Namespaces Isolation = iota
	// Chroot gives it a root of its own and another user. Only a supervisor that is
	// root can do that.
	Chroot
	// None makes it an ordinary child process.
	None
)

// Options make a supervisor.
type Options struct {
	// Dir keeps what belongs to running programs, and their logs. It is made where it
	// is missing, and belongs to one supervisor at a time.
	Dir string
	// Executable is run with Arguments to start a program, and calls [Init]. They are
	// that of this process, even if its file was replaced meanwhile, and
	// [InitCommand], when they are empty.
	Executable string
	Arguments  []string
	// Images gives the roots of images.
	Images Images
	// Log gets a line for each start and each end; nil means none.
	Log *slog.Logger
	// Isolation is the strongest that is tried.
	Isolation Isolation
	// Grace is how long a program has to end when it is told to; DefaultGrace when it
	// is zero.
	Grace time.Duration
	// LogSize bounds one log, in bytes; DefaultLogSize when it is zero.
	LogSize int64
	// WatchEvery is how often memory is looked at; 500 ms when it is zero.
	WatchEvery time.Duration
	// Now gives the time; the system clock when it is nil.
	Now func() time.Time
	// Sleep waits between two starts, and less when the context ends.
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
		o.Grace = DefaultGrace
	}
	if o.LogSize == 0 {
		o.LogSize = DefaultLogSize
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

// Supervisor runs programs. It can be used by many goroutines.
type Supervisor struct {
	opts    Options
	lock    *flock.Flock
	starter *starter
	changes *changes

	// closing ends with Close, and with it what Ensure waits for.
	closing context.Context //nolint:containedctx // It is that of the supervisor itself.
	close   context.CancelCauseFunc

	mu       sync.Mutex
	programs map[string]*program
}

// errClosed is the cause of what a closed supervisor does not do.
var errClosed = errors.New("the supervisor is closed")

// New makes a supervisor of the folder, in which no program runs. What a supervisor
// that was killed has left there is removed; its programs ended with it. It fails
// with ProgramsInUse when another supervisor has the folder, and with
// ProgramsUnsupported on other systems than Linux.
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
		return nil, ErrProgramFolder.New(err, "cannot make the folder %s", o.Dir)
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
	s := &Supervisor{opts: o, lock: lock, starter: newStarter(o), changes: newChanges(), programs: map[string]*program{}}
	s.closing, s.close = context.WithCancelCause(context.Background())
	return s, nil
}

// prepare makes the folders, empty but for the logs.
func prepare(dir string) error {
	programs := filepath.Join(dir, programsFolder)
	if err := discard(programs); err != nil {
		return err
	}
	// What programs are given has secrets.
	err := os.Mkdir(programs, 0o700)
	return errors.Join(err, os.MkdirAll(logFolder(dir), 0o700), pruneLogs(logFolder(dir)))
}

func logFolder(dir string) string { return filepath.Join(dir, logsFolder) }

// Ensure makes a program run as the spec says: it starts one that does not run,
// starts one anew of which anything but the content of files has changed, and leaves
// every other alone. An image that is not here is fetched first, while what runs
// goes on.
//
// It returns when the program was started for the first time. From then on the
// supervisor starts it again whenever it ends. An error is that of the spec or the
// image, and nothing has changed then; or that of the first start, which is tried
// again with increasing pauses.
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

// Stop ends a program and everything that it started, and returns when it is gone:
// with SIGTERM, and with SIGKILL after the grace or when the context ends. A program
// that does not run is no failure.
func (s *Supervisor) Stop(ctx context.Context, name string) error {
	p, leave, err := s.enter(ctx, name)
	if err != nil {
		return err
	}
	defer leave()
	return p.stop(ctx)
}

// enter gives the program of a name to one caller at a time.
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

// forget drops what is known of a name when nobody deals with it and nothing runs.
func (s *Supervisor) forget(p *program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.wanted--
	if p.wanted == 0 && p.run == nil {
		delete(s.programs, p.name)
	}
}

// Status tells the state of a program; false when there is none of that name.
func (s *Supervisor) Status(name string) (Status, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.programs[name]
	if !ok || p.run == nil {
		return Status{}, false
	}
	return p.run.status, true
}

// Changes gives the name of each program whose status has changed, once for all
// changes since it was given last. It is closed by Close. There is one channel;
// nothing is lost while nobody reads from it.
func (s *Supervisor) Changes() <-chan string { return s.changes.out }

// Logs reads the log of a program; see [OpenLog].
func (s *Supervisor) Logs(ctx context.Context, name string, follow bool, tail int) (io.ReadCloser, error) {
	return OpenLog(ctx, s.opts.Dir, name, follow, tail)
}

// Close ends all programs, as Stop does, and gives the folder back. Nothing can be
// started afterwards.
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
	s.starter.close()
	s.changes.close()
	return errors.Join(errors.Join(errs...), s.lock.Close())
}
