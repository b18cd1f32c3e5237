// Package cluster provides tests with a real API server and a registry on the loopback
// interface.
//
// A test binary has one API server. The first test that needs it starts it, because a start takes
// seconds, and all tests share it: each test uses its own object names. Tests that change a whole
// cluster take turns on a few others, see [Own]. The servers stop with the test binary, even if the
// binary is killed, and remove their files.
package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/xpkg-dev/xpkg/internal/up/child"
)

// startLimit is the time limit of a start on a machine that is busy with other tests. An idle
// machine needs three seconds.
const startLimit = 2 * time.Minute

// Start returns the configuration of an administrator of the API server of this test binary,
// without a rate limit. It skips the test with -short, and fails it if the control plane is
// not built.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	return start(Program(t)).config(t)
}

// Own is like [Start], for an API server that no other test uses until this one ends. A test runs
// in parallel with others, and must leave no object behind that a later one would find.
func Own(t testing.TB) *rest.Config {
	t.Helper()
	program := Program(t)
	if test, ok := t.(*testing.T); ok {
		test.Parallel()
	}
	s := <-own
	t.Cleanup(func() { own <- s })
	if s.process == nil {
		s.process, s.err = launch(program, &s.log)
	}
	return s.config(t)
}

// own are the API servers for tests with one of their own. Most of the time, a test waits for its manager.
var own = func() chan *server {
	const servers = 3
	out := make(chan *server, servers)
	for range servers {
		out <- &server{}
	}
	return out
}()

// Kubeconfig is like [Start], and returns the path of a kubeconfig.
func Kubeconfig(t testing.TB) string {
	t.Helper()
	return running(t).Kubeconfig
}

// PID is like [Start], and returns the process ID of the API server. Its database and
// controllers run in the same process.
func PID(t testing.TB) int {
	t.Helper()
	return running(t).PID
}

func running(t testing.TB) *child.Process {
	t.Helper()
	return start(Program(t)).running(t)
}

// server is an API server, or the reason why it could not be started.
type server struct {
	process *child.Process
	err     error
	// log holds the end of its log, for the messages of failed tests.
	log tail
}

func (s *server) running(t testing.TB) *child.Process {
	t.Helper()
	if s.err != nil {
		t.Fatalf("cannot start an API server for the tests: %v\nits log ends so:\n%s", s.err, s.log.String())
	}
	select {
	case <-s.process.Done():
		t.Fatalf("the API server of the tests ended: %v\nits log ends so:\n%s", s.process.Err(), s.log.String())
	default:
	}
	return s.process
}

func (s *server) config(t testing.TB) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.running(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// Program returns the path of the control plane. It skips the test with -short, and fails it
// if the control plane is not built.
func Program(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server: skipped with -short")
	}
	folder, err := binFolder()
	if err != nil {
		t.Fatal(err)
	}
	program, err := child.Find(os.Getenv, folder)
	if err != nil {
		t.Fatalf("%v\nbuild it with: make build", err)
	}
	return program
}

// start starts the shared API server once. All callers use the same program.
var start = func() func(string) *server {
	var once sync.Once
	var s server
	return func(program string) *server {
		once.Do(func() { s.process, s.err = launch(program, &s.log) })
		return &s
	}
}()

// launch starts the control plane in a new directory, which belongs to no test because it outlives
// the first one. The control plane removes the directory when it stops.
func launch(program string, log *tail) (*child.Process, error) {
	dir, err := os.MkdirTemp("", "xpkg-test-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	process, err := child.Start(ctx, child.Options{Program: program, DataDir: dir, Throwaway: true, Log: log})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	select {
	case <-process.Healthy():
		return process, nil
	case <-process.Done():
		return nil, errors.Join(errors.New("the control plane ended"), process.Err())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), process.Stop())
	}
}

// binFolder returns the folder bin of the repository. Tests run in the folder of their package, so
// the root is the nearest parent folder with a go.mod.
func binFolder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "bin"), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", os.ErrNotExist
		}
		dir = parent
	}
}
