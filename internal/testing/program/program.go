// Package program builds xpkg for a test and runs its manager as a process of its
// own, so that the test can measure it, kill it, and start it again.
package program

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const module = "github.com/xpkg-dev/xpkg"

// Build compiles xpkg from the sources of the test, and returns the path of the binary.
func Build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "xpkg")
	cmd := exec.CommandContext(
		t.Context(), "go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-o", path,
		module+"/cmd/xpkg",
	)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// GoFolders returns the variables with which Go finds its caches in another home folder.
func GoFolders(t testing.TB) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := strings.Fields(string(out))
	return []string{"GOCACHE=" + folders[0], "GOMODCACHE=" + folders[1], "GOPATH=" + folders[2], "GOFLAGS=-mod=readonly"}
}

// Manager is an "xpkg manager" process.
type Manager struct {
	cmd  *exec.Cmd
	log  buffer.Buffer
	done chan struct{}
	err  error // to be read after done is closed
}

// ReadyLimit is the time limit of a start on a busy machine. An idle machine needs one or two
// seconds.
const ReadyLimit = 2 * time.Minute

// Start runs the manager with further arguments, and returns when it is ready. By default it
// runs no package runtimes. The manager stores its package cache and all other files in the
// directory cache. The process ends with the test at the latest.
func Start(t testing.TB, program, kubeconfig, cache string, args ...string) *Manager {
	t.Helper()
	address := port.Free(t)
	args = append([]string{
		"manager", "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(cache, "packages"), "--health-address", address,
		"--package-runtime", "None",
	}, args...)
	m := &Manager{cmd: exec.Command(program, args...), done: make(chan struct{})}
	// The manager collects garbage as often as in a cluster, whatever the tests do: they measure its memory.
	m.cmd.Env = append(os.Environ(), "GOGC=100", "HOME="+cache, "XDG_CACHE_HOME="+cache, "KUBECONFIG=", "DOCKER_CONFIG="+
		filepath.Join(cache, "docker"))
	m.cmd.Stderr = &m.log
	DieWithTest(m.cmd)
	started := make(chan error)
	go m.run(started)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	wait.Until(t, ReadyLimit, "the manager is ready", func() (string, bool) {
		select {
		case <-m.done:
			t.Fatalf("the manager ended: %v\n%s", m.err, m.Log())
		default:
		}
		return m.Log(), IsReady(t.Context(), "http://"+address+"/readyz")
	})
	return m
}

// PID returns the process ID of the manager.
func (m *Manager) PID() int { return m.cmd.Process.Pid }

// Log returns the output of the manager so far.
func (m *Manager) Log() string { return m.log.String() }

// Stop stops the manager with SIGTERM, as a cluster does, and waits until the process has exited.
func (m *Manager) Stop(t testing.TB) {
	t.Helper()
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-m.done
	if m.err != nil {
		t.Errorf("the manager ended with %v:\n%s", m.err, m.Log())
	}
}

// Kill kills the manager, and waits until the process has exited.
func (m *Manager) Kill() {
	// An error means that the process has already ended.
	_ = m.cmd.Process.Kill()
	<-m.done
}

// IsReady reports whether a readiness check succeeds.
func IsReady(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
