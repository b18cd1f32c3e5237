package sandbox

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/filetree"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/logs"
)

// program is the state of the runtime with a name, which may have a running process.
type program struct {
	supervisor *Supervisor
	name       string
	// turn is a lock that is held by the goroutine that changes the program.
	turn chan struct{}
	// wanted counts the goroutines that hold or wait for turn, and run is the current
	// run. Both are guarded by the supervisor's lock.
	wanted int
	run    *run
	// given are the current files, guarded by turn.
	given map[string][]byte

	// filesLock prevents a start from copying files while they are replaced. Mirror is the folder
	// with the copy of the files for a running process without mounts.
	filesLock sync.Mutex
	mirror    string
}

// run is the supervision of a program with one spec.
type run struct {
	program *program
	spec    Spec
	root    Root
	command command
	log     *logs.Writer

	status Status // Guarded by the supervisor's lock.

	// stopping ends the run with SIGTERM, and hurry with SIGKILL.
	stopping context.Context // The run outlives the call that started it.
	stop     context.CancelFunc
	hurry    chan struct{}
	done     chan struct{}
}

func (p *program) folder() string {
	return filepath.Join(p.supervisor.opts.Dir, programsFolder, p.name)
}

// files returns the given files, which outlive a restart.
func (p *program) files() files { return files{filepath.Join(p.folder(), "files")} }

// ensure starts or changes the program. The caller must hold turn.
func (p *program) ensure(ctx context.Context, spec Spec) error {
	if p.run != nil && p.run.spec.same(spec) {
		return p.replaceFiles(spec)
	}
	root, err := p.supervisor.opts.Images.Image(ctx, spec.Origin, spec.Digest)
	if err != nil {
		return err
	}
	command, err := newCommand(root, spec)
	if err != nil {
		root.release()
		return err
	}
	if err := p.stop(ctx); err != nil {
		root.release()
		return err
	}
	return p.begin(ctx, spec, root, command)
}

// replaceFiles writes new file content for a running program.
func (p *program) replaceFiles(spec Spec) error {
	if sameFiles(p.given, spec.Files) {
		return nil
	}
	p.filesLock.Lock()
	defer p.filesLock.Unlock()
	err := p.files().write(spec.Files)
	if err == nil && p.mirror != "" {
		err = files{p.mirror}.write(spec.Files)
	}
	if err != nil {
		return ErrProgramFolder.New(err, "cannot replace the files of %s", p.name)
	}
	p.given = spec.Files
	return nil
}

// mirrorFiles copies the files to a folder that a process without mounts can read.
func (p *program) mirrorFiles(to string) error {
	p.filesLock.Lock()
	defer p.filesLock.Unlock()
	p.mirror = to
	return filetree.Copy(p.files().dir, to)
}

// begin starts a stopped program, and waits for its first start.
func (p *program) begin(ctx context.Context, spec Spec, root Root, command command) error {
	s := p.supervisor
	r := &run{
		program: p, spec: spec, root: root, command: command,
		hurry: make(chan struct{}), done: make(chan struct{}),
	}
	p.given, p.mirror = spec.Files, ""
	err := filetree.Remove(p.folder())
	if err == nil {
		err = p.files().write(spec.Files)
	}
	if err == nil {
		r.log, err = logs.NewWriter(s.opts.Dir, p.name, s.opts.LogSize)
	}
	if err != nil {
		root.release()
		return ErrProgramFolder.New(err, "cannot prepare the program %s", p.name)
	}
	// The run outlives the context of the caller.
	r.stopping, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	p.run = r
	s.mu.Unlock()
	first := make(chan error, 1)
	go r.loop(first)
	select {
	case err := <-first:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop ends the run, if any, and waits until its processes have exited.
func (p *program) stop(ctx context.Context) error {
	r := p.run
	if r == nil {
		return nil
	}
	r.stop()
	select {
	case <-r.done:
	case <-ctx.Done():
		close(r.hurry)
		<-r.done
	}
	s := p.supervisor
	s.mu.Lock()
	p.run = nil
	s.mu.Unlock()
	r.root.release()
	s.changes.report(p.name)
	if err := errors.Join(r.log.Close(), filetree.Remove(p.folder())); err != nil {
		s.opts.Log.Warn("cannot clean up after a program", "program", p.name, "error", err)
	}
	return nil
}

// loop restarts the process until the run is stopped.
func (r *run) loop(first chan<- error) {
	defer close(r.done)
	opts := r.program.supervisor.opts
	var pauses backoff
	for r.stopping.Err() == nil {
		begin := opts.Now()
		exit, err := r.once(first)
		first = nil
		if r.stopping.Err() != nil {
			break
		}
		exit.Time = opts.Now()
		pause := pauses.after(exit.Time.Sub(begin))
		if err != nil {
			exit = Exit{Time: exit.Time, Code: -1, Reason: err.Error()}
		}
		opts.Log.Warn("a program exited and will be restarted", "program", r.spec.Name, "reason", exit.Reason, "pause", pause)
		r.update(func(s *Status) {
			s.Running, s.Since, s.PID = false, time.Time{}, 0
			s.LastExit, s.NextStart = &exit, exit.Time.Add(pause)
		})
		if opts.Sleep(r.stopping, pause) != nil {
			break
		}
		r.update(func(s *Status) { s.Restarts++ })
	}
	r.update(func(s *Status) { *s = Status{Restarts: s.Restarts, LastExit: s.LastExit, Isolation: s.Isolation} })
}

// once runs the process once, from its start to its exit.
func (r *run) once(first chan<- error) (Exit, error) {
	s := r.program.supervisor
	i, err := s.launcher.start(r.stopping, r)
	if err != nil && r.stopping.Err() == nil {
		err = ErrProgramStart.New(err, "cannot start the program %s", r.spec.Name)
	}
	if err == nil {
		s.opts.Log.Info("program started", "program", r.spec.Name, "pid", i.pid, "isolation", i.isolation)
		r.update(func(st *Status) {
			st.Running, st.Since, st.PID = true, s.opts.Now(), i.pid
			st.NextStart, st.Isolation = time.Time{}, i.isolation
		})
	}
	if first != nil {
		first <- err
	}
	if err != nil {
		return Exit{}, err
	}
	return r.watch(i), nil
}

// watch waits for the exit of the process. It kills a process that exceeds a limit, or that does
// not exit within the grace period after SIGTERM.
func (r *run) watch(i *instance) Exit {
	opts := r.program.supervisor.opts
	tick := time.NewTicker(opts.WatchEvery)
	defer tick.Stop()
	over := ""
	stopping := r.stopping.Done()
	hurry := r.hurry
	var grace <-chan time.Time
	for {
		select {
		case <-i.gone:
			exit := i.exit
			if over != "" {
				exit.Reason = over
			}
			return exit
		case <-tick.C:
			if over == "" {
				if over = i.excess(r.spec); over != "" {
					i.kill()
				}
			}
		case <-stopping:
			stopping = nil
			i.terminate()
			timer := time.NewTimer(opts.Grace)
			defer timer.Stop()
			grace = timer.C
		case <-grace:
			i.kill()
		case <-hurry:
			hurry = nil
			i.kill()
		}
	}
}

func (r *run) update(change func(*Status)) {
	s := r.program.supervisor
	s.mu.Lock()
	change(&r.status)
	s.mu.Unlock()
	s.changes.report(r.spec.Name)
}

// private creates and returns the empty folder for the writes of the next start.
func (r *run) private() (string, error) {
	dir := filepath.Join(r.program.folder(), "private")
	if err := filetree.Remove(dir); err != nil {
		return "", err
	}
	return dir, filetree.Mkdir(dir, 0o755)
}
