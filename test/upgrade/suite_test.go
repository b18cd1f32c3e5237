// Package upgrade_test upgrades a provider to versions that work and to versions that do not, while
// its custom resources are written continuously.
package upgrade_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/processruntime"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
)

// TestMain runs the init process of the sandbox, which the supervisor starts from this binary.
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

// activation is the activation deadline of new versions.
const activation = 12 * time.Second

// suite is an environment with a manager that runs package runtimes as processes.
type suite struct {
	*testing.T
	*env.Env
	executable []byte
	supervisor *sandbox.Supervisor
	// address is the address at which the API server reaches the processes.
	address  string
	overlaps *overlapRecorder
	// stop stops the manager and all runtimes.
	stop func()
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{T: t, Env: env.New(t), overlaps: newOverlapRecorder(t), address: processruntime.MachineAddress()}
	var err error
	if s.executable, err = scratch.Compile("testdata/program"); err != nil {
		t.Fatal(err)
	}
	s.start()
	return s
}

// start runs a manager until the test ends or the manager is stopped.
func (s *suite) start() {
	s.Helper()
	dir := s.TempDir()
	content := env.OpenContent(s, dir, fetch.Options{})
	roots, err := sandbox.NewRoots(sandbox.RootsOptions{Dir: filepath.Join(dir, "images"), Source: content.Source})
	if err != nil {
		s.Fatal(err)
	}
	s.supervisor, err = sandbox.New(sandbox.Options{
		Dir: filepath.Join(dir, "runtime"), Images: roots, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if s.Failed() {
			s.logRuntimes(filepath.Join(dir, "runtime", "logs"))
		}
	})
	choice, err := runtime.ParseChoice("Provider/"+hooked+"=External", runtime.Process)
	if err != nil {
		s.Fatal(err)
	}
	o := content.Options()
	o.MakeNamespace, o.Runtimes, o.ActivationDeadline, o.CertificateOverlap = true, choice, activation, overlap
	o.Processes = &processruntime.Host{Supervisor: s.supervisor, Images: roots, Address: s.address}
	o.Permissions = &controller.Permissions{}
	manager := s.StartManager(s, o)
	s.stop = sync.OnceFunc(func() {
		manager.Stop()
		if err := s.supervisor.Close(); err != nil {
			s.Error(err)
		}
	})
	s.Cleanup(s.stop)
	manager.WaitReady(s)
}

// logRuntimes logs the last output of the runtimes.
func (s *suite) logRuntimes(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		s.Error(err)
	}
	for _, file := range files {
		output, err := os.ReadFile(file)
		s.Logf("%s (%v):\n%s", filepath.Base(file), err, output[max(0, len(output)-2000):])
	}
}

// overlapRecorder records runtimes that start while another one runs.
type overlapRecorder struct {
	// hold is the address that each runtime listens on, and report the URL that a runtime calls
	// if the address is in use.
	hold, report string

	mu       sync.Mutex
	versions []string
}

func newOverlapRecorder(t *testing.T) *overlapRecorder {
	t.Helper()
	o := &overlapRecorder{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.versions = append(o.versions, r.URL.Query().Get("version"))
	}))
	t.Cleanup(server.Close)
	o.hold, o.report = port.Free(t), server.URL
	return o
}

// recorded returns the versions that started while another one was running.
func (o *overlapRecorder) recorded() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.versions
}
