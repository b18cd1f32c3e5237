// Package cluster provides tests with a real API server and a registry on the loopback
// interface.
//
// A test binary has one API server. The first test that needs it starts it, because a start takes
// seconds, and all tests share it: each test uses its own object names. The server stops with the
// test binary, even if the binary is killed, and removes its files.
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
	config, err := clientcmd.BuildConfigFromFlags("", Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

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
	program := Program(t)
	process, err := start(program)
	if err != nil {
		t.Fatalf("cannot start an API server for the tests: %v\nits log ends so:\n%s", err, serverLog.String())
	}
	select {
	case <-process.Done():
		t.Fatalf("the API server of the tests ended: %v\nits log ends so:\n%s", process.Err(), serverLog.String())
	default:
	}
	return process
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

// serverLog holds the end of the API server's log, for the messages of failed tests.
var serverLog tail

// start starts the control plane once. All callers use the same program.
var start = func() func(string) (*child.Process, error) {
	var once sync.Once
	var process *child.Process
	var err error
	return func(program string) (*child.Process, error) {
		once.Do(func() { process, err = launch(program) })
		return process, err
	}
}()

// launch starts the control plane in a new directory, which belongs to no test because it outlives
// the first one. The control plane removes the directory when it stops.
func launch(program string) (*child.Process, error) {
	dir, err := os.MkdirTemp("", "xpkg-test-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	process, err := child.Start(ctx, child.Options{Program: program, DataDir: dir, Throwaway: true, Log: &serverLog})
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
