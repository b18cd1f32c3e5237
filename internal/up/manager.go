package up

import (
	"context"
	"errors"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// managerGrace is the maximum time that a stop waits for the manager.
const managerGrace = 10 * time.Second

// Env is the environment of a manager.
type Env struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Config is the client configuration of the manager, without a rate limit.
	Config *rest.Config
	// Registry is the host:port of the registry, which serves plain HTTP.
	Registry string
	// CacheDir is a folder for content that can be fetched again.
	CacheDir string
	// Ready must be called when the manager reconciles, which makes the control plane ready. It may
	// be called more than once.
	Ready func()
	// Fail ends the start with an error that another attempt cannot change. It has no effect once the control plane is
	// ready.
	Fail func(error)
	// SetCore records the Crossplane core of the control plane in its state.
	SetCore func(Core)
	// Warn reports a problem of the manager, which goes on. It explains a start that takes too long.
	Warn func(error)
}

// ManagerName is the name of the manager for the API server.
const ManagerName = "xpkg-manager"

// newEnv returns an environment without functions.
func newEnv(plane *controlPlane, images *registryServer, dir *datadir.Dir) (Env, error) {
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		return Env{}, ErrControlPlaneFailed.New(err, "cannot read the kubeconfig of the control plane")
	}
	config.QPS = -1
	// The guard of removals distinguishes the manager from the administrator.
	config.Impersonate = rest.ImpersonationConfig{UserName: ManagerName, Groups: []string{user.SystemPrivilegedGroup}}
	return Env{
		Kubeconfig: plane.Kubeconfig, Config: config, Registry: images.address, CacheDir: dir.Cache(),
	}, nil
}

// Manager runs a package manager until the context ends. If it returns earlier, with or without an
// error, it is called again after a pause.
type Manager func(ctx context.Context, env Env) error

// errEnded is the reason if the manager returns no error.
var errEnded = errors.New("the manager ended by itself")

// backoff computes the pause before the manager is started again. The pause doubles each time up to
// the limit, and is reset after a run that was longer than the limit.
type backoff struct{ first, limit time.Duration }

var managerBackoff = backoff{first: time.Second, limit: 30 * time.Second}

// run runs the manager, and restarts it whenever it ends, until the context ends.
func (b backoff) run(ctx context.Context, m Manager, env Env, now func() time.Time, report func(error)) {
	pause := b.first
	for {
		begin := now()
		err := m(ctx, env)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errEnded
		}
		report(err)
		if now().Sub(begin) > b.limit {
			pause = b.first
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, b.limit)
	}
}

// startManager starts the manager, and returns the function that stops it. It calls ended with the
// reason each time that the manager ends.
func startManager(ctx context.Context, o Options, env Env, ended func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		managerBackoff.run(ctx, o.Manager, env, o.Now, func(err error) {
			ended(err)
			o.Progress(Event{Stage: StageManager, Err: err})
		})
	}()
	return func() {
		cancel()
		timer := time.NewTimer(managerGrace)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
	}
}
