// Package upgrade_test upgrades a provider while its resources are written all the
// time, to versions that work and to versions that do not.
package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/processruntime"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
)

// TestMain lets the test binary be the step between a supervisor and a program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.InitCommand {
		if err := sandbox.Init(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// activation is how long a new version may take to become healthy.
const activation = 12 * time.Second

// stand is a manager that runs programs as processes, on a real API server.
type stand struct {
	*testing.T
	client     client.Client
	registry   string
	executable []byte
	supervisor *sandbox.Supervisor
	// address is that by which the API server reaches programs.
	address string
	witness *witness
	// stop ends the manager, and all programs with it.
	stop func()
}

func newStand(t *testing.T) *stand {
	t.Helper()
	cfg := cluster.Start(t)
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	executable, err := scratch.Compile("testdata/program")
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{T: t, client: c, registry: cluster.Registry(t), executable: executable, witness: newWitness(t), address: processruntime.MachineAddress()}
	s.start(cfg)
	return s
}

// start runs a manager until the test ends, or until it is stopped before that.
func (s *stand) start(cfg *rest.Config) {
	s.Helper()
	dir := s.TempDir()
	packages, err := cache.Open(filepath.Join(dir, "packages"), cache.Options{})
	if err != nil {
		s.Fatal(err)
	}
	source := fetch.NewSource(fetch.Options{Store: packages.Store(), Names: packages})
	roots, err := sandbox.NewRoots(sandbox.RootsOptions{Dir: filepath.Join(dir, "images"), Source: source})
	if err != nil {
		s.Fatal(err)
	}
	s.supervisor, err = sandbox.New(sandbox.Options{Dir: filepath.Join(dir, "runtime"), Images: roots, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if s.Failed() {
			s.tell(filepath.Join(dir, "runtime", "logs"))
		}
	})
	choice, err := runtime.ParseChoice("Provider/"+hooked+"=External", runtime.Process)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, controller.Options{
			Config: cfg, MakeNamespace: true, Content: source, Images: source, InUse: packages.Use, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
			Runtimes: choice, CertificateOverlap: overlap, Processes: &processruntime.Host{Supervisor: s.supervisor, Images: roots, Address: s.address},
			Permissions: &controller.Permissions{}, ActivationDeadline: activation,
		})
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			s.Errorf("manager: %v", err)
		}
		source.Close()
		if err := errors.Join(s.supervisor.Close(), packages.Close()); err != nil {
			s.Error(err)
		}
	})
	s.Cleanup(s.stop)
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		s.Fatalf("the manager did not start: %v", err)
	}
}

// tell shows what programs have said.
func (s *stand) tell(logs string) {
	files, err := filepath.Glob(filepath.Join(logs, "*.log"))
	if err != nil {
		s.Error(err)
	}
	for _, file := range files {
		said, err := os.ReadFile(file)
		s.Logf("%s (%v):\n%s", filepath.Base(file), err, said[max(0, len(said)-2000):])
	}
}

// witness is told by a program that finds another one alive.
type witness struct {
	// hold is the address that each program holds, and tell where it tells.
	hold, tell string

	mu   sync.Mutex
	told []string
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, r.URL.Query().Get("version"))
	}))
	t.Cleanup(server.Close)
	w.hold, w.tell = port.Free(t), server.URL
	return w
}

// overlaps are the versions that found another one alive.
func (w *witness) overlaps() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told
}
