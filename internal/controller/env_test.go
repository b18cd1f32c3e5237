package controller_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// testEnv is a package manager as it is deployed: on a real API server, with a package
// cache in a folder, and with registries that it dials. Its calls to the API server and
// its connections are recorded.
type testEnv struct {
	*env.Env
	// folder is the folder of the package cache.
	folder string
	audit  *env.Audit
	dials  *env.Dials
	// options are the options of the next manager.
	options controller.Options
	// now is the clock of the lookups in registries; nil is the system clock.
	now func() time.Time
	// log is the handler of the manager's log; nil discards it.
	log slog.Handler
}

// poll is the lookup interval of packages with the policy Always.
const poll = time.Second

// openEnv returns an environment without a registry; tests start their own.
func openEnv(t testing.TB, cfg *rest.Config, folder string) *testEnv {
	t.Helper()
	return &testEnv{
		Env: &env.Env{Config: cfg, Client: env.NewClient(t, cfg)}, folder: folder,
		audit: &env.Audit{}, dials: &env.Dials{}, options: controller.Options{Poll: poll},
	}
}

// newEnv returns an environment for a test with an API server of its own, without a manager.
func newEnv(t testing.TB) *testEnv {
	t.Helper()
	return openEnv(t, cluster.Own(t), filepath.Join(t.TempDir(), "cache"))
}

// start runs a manager until the test ends, or until it is stopped before that.
func (s *testEnv) start(t testing.TB) (stop func()) {
	t.Helper()
	content, manager := s.launch(t)
	stop = sync.OnceFunc(func() {
		if err := errors.Join(manager.Close(), content.Close()); err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(stop)
	manager.WaitReady(t)
	return stop
}

// launch starts a manager that runs until it and its content are closed.
func (s *testEnv) launch(t testing.TB) (*env.Content, *env.Manager) {
	t.Helper()
	content, err := env.NewContent(s.folder, fetch.Options{Remote: s.remote(), Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	o.Config, o.Content, o.Images, o.InUse = s.audit.Wrap(s.Config), content.Source, content.Source, content.Cache.Use
	if d := o.Dependencies; d != nil {
		o.Dependencies = &controller.Dependencies{Registry: content.Source, Upgrades: d.Upgrades, Removal: d.Removal}
	}
	if s.log != nil {
		o.Log = slog.New(s.log)
	}
	return content, env.Launch(o)
}

// remote returns the options of the registry client. Its short timeouts limit the time
// that tests of unresponsive registries take.
func (s *testEnv) remote() remote.Options {
	return remote.Options{
		Dial: s.dials.Dial, Lookup: env.Unresolvable, Patience: time.Second, Attempts: 2, MinRate: 64 << 20,
	}
}

// shared is the environment of all tests that need no manager of their own.
var shared = sharedTestEnv{turns: make(chan struct{}, 12)}

type sharedTestEnv struct {
	// turns has the tests that run.
	turns   chan struct{}
	once    sync.Once
	env     *testEnv
	content *env.Content
	manager *env.Manager
	dir     string
	// definitions is locked while a test takes the definitions of all Providers away, and read while one relies on them.
	definitions sync.RWMutex
}

// sharedEnv returns the environment that tests share. They run in parallel, and each
// has its own packages and registries.
func sharedEnv(t *testing.T) *testEnv {
	t.Helper()
	cluster.Start(t)
	t.Parallel()
	shared.turns <- struct{}{}
	t.Cleanup(func() { <-shared.turns })
	shared.once.Do(func() { shared.begin(t) })
	if shared.manager == nil {
		t.Fatal("the shared manager was not started")
	}
	shared.manager.WaitReady(t)
	return shared.env
}

// begin starts the manager, with a folder that outlives the test.
func (c *sharedTestEnv) begin(t *testing.T) {
	t.Helper()
	var err error
	if c.dir, err = os.MkdirTemp("", "xpkg-test-"); err != nil {
		t.Fatal(err)
	}
	c.env = openEnv(t, cluster.Start(t), filepath.Join(c.dir, "cache"))
	c.content, c.manager = c.env.launch(t)
}

func (c *sharedTestEnv) end() {
	if c.manager != nil {
		_ = c.manager.Close()
		_ = c.content.Close()
	}
	_ = os.RemoveAll(c.dir)
}
