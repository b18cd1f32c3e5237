package up

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

// Options configure a control plane.
type Options struct {
	// Dir is the data directory; see [datadir.Default].
	Dir string
	// Port and RegistryPort are ports of the loopback interface. Zero means the port of the last
	// start or, in a new data directory, a free one. LastPort means the port of the last start or,
	// in a new data directory, the default.
	Port, RegistryPort int
	// CRDOpenAPI publishes the schemas of custom resources in OpenAPI, which costs memory. Without
	// it, "kubectl explain" does not know custom resources.
	CRDOpenAPI bool
	// MaxUpload is the maximum size in bytes of a blob that is pushed to the registry. Zero means 4
	// GiB.
	MaxUpload int64
	// StartTimeout is the maximum time until the control plane is ready. Zero means three minutes.
	StartTimeout time.Duration
	// Unblock is called while the API server starts. It may be nil.
	Unblock Unblock
	// Manager is the package manager. If it is nil, the control plane has none.
	Manager Manager
	// Progress is called with the steps of the start and of the stop, from several goroutines. It
	// must not block, and may be nil.
	Progress func(Event)
	// Policies are ValidatingAdmissionPolicies and their bindings, which no client of the API can change, by the names of
	// their files.
	Policies map[string]any
	// Flags are the flags of the start that messages repeat in the command for the next start.
	Flags []string
	// Version is the version of xpkg, for state.json.
	Version string
	// Now returns the current time. Nil means the system clock.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	if o.MaxUpload == 0 {
		o.MaxUpload = defaultMaxUpload
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if o.Manager == nil {
		o.Manager = func(ctx context.Context, env Env) error {
			env.Ready()
			<-ctx.Done()
			return nil
		}
	}
	return o
}

// Run runs a control plane until the context ends, and then stops it and returns nil. If the
// context ends before the control plane is ready, Run returns the cause of the context.
//
// If it fails, no process is left running. The error has one of these codes: ErrDataDirForeign,
// ErrDataDirUnsafe, ErrDataDirVersion, ErrDataDirInUse, ErrDataDirUnusable, ErrPortInUse,
// ErrControlPlaneMissing, ErrControlPlaneFailed, ErrRegistryFailed or ErrNotReady.
func Run(ctx context.Context, o Options) error {
	err := run(ctx, o.withDefaults())
	if err != nil {
		join(&err, func() error { return writeReport(err) })
	}
	return err
}

func run(ctx context.Context, o Options) (err error) {
	begin := o.Now()
	program, err := FindProgram()
	if err != nil {
		return err
	}
	dir, err := datadir.Open(o.Dir, begin)
	if err != nil {
		return err
	}
	defer join(&err, dir.Close)
	if err := waitForPrevious(ctx, o, dir); err != nil {
		return err
	}
	if err := dir.SaveFlags(o.Flags); err != nil {
		return ErrDataDirUnusable.New(err, "cannot save the flags of the start")
	}
	listener, port, err := openPorts(o, dir)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := recordRegistry(dir, listener.Addr().String()); err != nil {
		return err
	}
	o.Port = port
	log, err := openLog(dir.Logs(), controlPlaneLog)
	if err != nil {
		return err
	}
	defer join(&err, log.Close)
	deadline := newDeadline(ctx, o, dir, log)
	defer deadline.stop()
	plane, err := startControlPlane(deadline.ctx, o, dir, program, log)
	if err != nil {
		return deadline.explain(err, "the API server did not respond")
	}
	o.Progress = deadline.observe(o.Progress)
	return serve(ctx, o, dir, plane, listener, deadline, begin)
}

// serve runs the registry and the manager until the context ends, and then stops them and the
// child.
func serve(
	ctx context.Context, o Options, dir *datadir.Dir, plane *controlPlane, listener net.Listener, deadline *deadline,
	begin time.Time,
) (err error) {
	stopped := func() {}
	defer func() { stopped() }()
	defer join(&err, plane.stop)

	done := o.stage(StageRegistry)
	images, err := startRegistry(o, dir, listener, installedUses(plane.Kubeconfig))
	if err != nil {
		return err
	}
	defer join(&err, images.stop)
	done()

	done = o.stage(StageManager)
	ready := make(chan struct{})
	state := &stateFile{path: dir.File(datadir.StateName), warn: func(err error) {
		o.Progress(Event{Stage: StageManager, Warning: "cannot write the state of the control plane: " + err.Error()})
	}}
	once := sync.OnceFunc(func() { close(ready) })
	env, err := newEnv(plane, images, dir)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	env.Ready = func() { state.setManager(nil); once() }
	env.SetCore, env.Fail = state.setCore, func(err error) {
		select {
		case failed <- err:
		default: // The first error ends the start.
		}
	}
	env.Warn = func(err error) { o.Progress(Event{Stage: StageManager, Warning: err.Error(), Cause: err}) }
	defer startManager(ctx, o, env, state.setManager)()
	defer func() { stopped = o.stage(StageStopping) }()
	if err := watch(deadline.ctx, plane, images, ready, failed); err != nil {
		return deadline.explain(err, "the package manager did not become ready")
	}
	if err := watch(deadline.ctx, plane, images, plane.Healthy(), failed); err != nil {
		return deadline.explain(err, "the health checks of the API server did not pass")
	}
	deadline.stop()
	done()
	if err := announce(o, dir, state, plane, images, begin); err != nil {
		return err
	}
	if err := watch(ctx, plane, images, nil, nil); ctx.Err() == nil {
		return err
	}
	return nil
}

// watch waits until a part ends or has failed, the context ends, or the channel is closed. It returns nil only in
// the last case.
func watch(
	ctx context.Context, plane *controlPlane, images *registryServer, until <-chan struct{}, failed <-chan error,
) error {
	select {
	case <-until:
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-plane.Done():
		return plane.failure()
	case <-images.done:
		return ErrRegistryFailed.New(images.err, "the registry ended by itself")
	}
}

// announce writes the state for other commands, and reports that everything is ready.
func announce(
	o Options, dir *datadir.Dir, file *stateFile, plane *controlPlane, images *registryServer, begin time.Time,
) error {
	state, err := file.write(State{
		DataDir:         dir.Path,
		PID:             os.Getpid(),
		ControlPlanePID: plane.PID,
		Server:          plane.Server,
		Kubeconfig:      plane.Kubeconfig,
		Registry:        images.address,
		Started:         begin.UTC(),
		Kubernetes:      plane.Kubernetes,
		Version:         o.Version,
	})
	if err != nil {
		return ErrDataDirUnusable.New(err, "cannot write the state")
	}
	o.Progress(Event{Stage: StageReady, Done: true, Took: o.Now().Sub(begin), State: &state})
	return nil
}

// join adds the error of a clean-up to the error of a function.
func join(err *error, cleanUp func() error) {
	if failed := cleanUp(); failed != nil {
		*err = errors.Join(*err, failed)
	}
}
