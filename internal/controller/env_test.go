package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	appsv1 "k8s.io/api/apps/v1"

	corev1 "k8s.io/api/core/v1"

	eventsv1 "k8s.io/api/events/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// testEnv is a package manager as it is deployed: on a real API server, with a package
// cache in a folder, and with registries that it dials. Everything that leaves it is
// counted.
type testEnv struct {
	cfg    *rest.Config
	client client.WithWatch
	// folder is the folder of the package cache.
	folder string
	audit  *audit
	dials  *dialRecorder
	// options are the options of the next manager.
	options controller.Options
	// now, when it is set, is the clock of the lookups in registries.
	now func() time.Time
	// log, when it is set, gets what managers log.
	log slog.Handler
}

// poll is how often packages with the policy Always are looked up in tests.
const poll = time.Second

func openEnv(cfg *rest.Config, folder string) (*testEnv, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &testEnv{
		cfg: cfg, client: c, folder: folder, audit: &audit{}, dials: &dialRecorder{}, options: controller.Options{Poll: poll},
	}, nil
}

// newEnv returns an environment of the test's own, without a manager. No other test
// runs meanwhile.
func newEnv(t testing.TB) *testEnv {
	t.Helper()
	s, err := openEnv(cluster.Start(t), filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs a manager until the test ends, or until it is stopped before that.
func (s *testEnv) start(t testing.TB) (stop func()) {
	t.Helper()
	end, err := s.run()
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// run starts a manager and returns when it works.
func (s *testEnv) run() (end func() error, err error) {
	packages, err := cache.Open(s.folder, cache.Options{})
	if err != nil {
		return nil, err
	}
	source := fetch.NewSource(fetch.Options{Store: packages.Store(), Names: packages, Remote: s.remote(), Now: s.now})
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	o := s.options
	o.Config, o.Content, o.Images, o.InUse, o.Ready = s.audited(), source, source, packages.Use, func() { close(ready) }
	if o.Dependencies != nil {
		o.Dependencies = &controller.Dependencies{Registry: source, Upgrades: o.Dependencies.Upgrades, Removal: o.Dependencies.Removal}
	}
	o.Log = slog.New(slog.DiscardHandler)
	if s.log != nil {
		o.Log = slog.New(s.log)
	}
	go func() { ended <- controller.Run(ctx, o) }()
	end = func() error {
		cancel()
		err := <-ended
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		source.Close()
		return errors.Join(err, packages.Close())
	}
	select {
	case <-ready:
		return end, nil
	case err := <-ended:
		ended <- nil
		return nil, errors.Join(err, end())
	}
}

// remote is how registries are reached: with little patience, so that silence costs
// tests little time.
func (s *testEnv) remote() remote.Options {
	return remote.Options{Dial: s.dials.dial, Lookup: unresolvable, Patience: time.Second, Attempts: 2, MinRate: 64 << 20}
}

// unresolvable is a resolver without names, so that no request leaves this machine.
func unresolvable(_ context.Context, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (s *testEnv) audited() *rest.Config {
	cfg := rest.CopyConfig(s.cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return auditor{s.audit, next} })
	return cfg
}

// shared is the stand of all tests that can do with the same manager.
var shared sharedTestEnv

type sharedTestEnv struct {
	once sync.Once
	env  *testEnv
	stop func() error
	err  error
	dir  string
}

// sharedEnv returns the environment that tests share. They run in parallel, after
// the tests with their own managers, and each has its own packages and registries.
func sharedEnv(t *testing.T) *testEnv {
	t.Helper()
	cfg := cluster.Start(t)
	t.Parallel()
	shared.once.Do(func() { shared.err = shared.begin(cfg) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.env
}

// begin makes a folder outside of any test's own, since it outlives the first test.
func (c *sharedTestEnv) begin(cfg *rest.Config) (err error) {
	if c.dir, err = os.MkdirTemp("", "xpkg-test-"); err != nil {
		return err
	}
	if c.env, err = openEnv(cfg, filepath.Join(c.dir, "cache")); err != nil {
		return err
	}
	c.stop, err = c.env.run()
	return err
}

func (c *sharedTestEnv) end() {
	if c.stop != nil {
		_ = c.stop()
	}
	_ = os.RemoveAll(c.dir)
}

// dialRecorder counts connections by address.
type dialRecorder struct {
	mu  sync.Mutex
	all map[string]int
}

func (d *dialRecorder) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	if d.all == nil {
		d.all = map[string]int{}
	}
	d.all[address]++
	d.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, address)
}

// to returns the number of connections to an address, or to all addresses if it is
// empty.
func (d *dialRecorder) to(address string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if address != "" {
		return d.all[address]
	}
	n := 0
	for _, more := range d.all {
		n += more
	}
	return n
}
