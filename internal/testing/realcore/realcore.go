// Package realcore runs the executable of Crossplane core that XPKG_CORE names, for tests and benchmarks that cannot
// use a stand-in.
package realcore

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	// Variable is the environment variable with the path of the executable.
	Variable = "XPKG_CORE"
	// Namespace is the namespace of core, which must exist.
	Namespace = "crossplane-system"
	// Account is the ServiceAccount of core in the namespace, which must exist.
	Account = "crossplane"
	// ClientSecret is the Secret with the client certificate of core, which its initialization creates.
	ClientSecret = "crossplane-tls-client"
)

// Executable returns the path of the executable. It skips the test if there is none.
func Executable(t testing.TB) string {
	t.Helper()
	path := os.Getenv(Variable)
	if info, err := os.Stat(path); path == "" || err != nil || !info.Mode().IsRegular() {
		t.Skipf("%s is %q, not an executable of Crossplane core with the folder crds beside it", Variable, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Core is an installation of core.
type Core struct {
	executable  string
	environment []string
	certificate string
	client      client.Client
}

// New returns an installation that uses a kubeconfig. The client, which may be of another user, reads the certificate
// of core.
func New(t testing.TB, executable, kubeconfig string, c client.Client) *Core {
	t.Helper()
	dir := t.TempDir()
	core := &Core{executable: executable, certificate: filepath.Join(dir, "tls"), client: c}
	cache := filepath.Join(dir, "cache")
	for _, folder := range []string{cache, core.certificate} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	core.environment = append(os.Environ(),
		"KUBECONFIG="+kubeconfig, "POD_NAMESPACE="+Namespace, "POD_SERVICE_ACCOUNT="+Account,
		// The first for "core start", the second for "core init" of some versions.
		"ENABLE_WEBHOOKS=false", "WEBHOOK_ENABLED=false",
		"CRDS_PATH="+filepath.Join(filepath.Dir(executable), "crds"), "XPKG_CACHE_DIR="+cache,
		"TLS_CLIENT_CERTS_DIR="+core.certificate,
		"TLS_CA_SECRET_NAME=crossplane-root-ca", "TLS_SERVER_SECRET_NAME=crossplane-tls-server",
		"TLS_CLIENT_SECRET_NAME="+ClientSecret)
	return core
}

// Initialize runs the initialization of core once. At first it fails until the API server serves the new CRDs; a node
// starts it again.
func (c *Core) Initialize(ctx context.Context) error {
	initialization := exec.CommandContext(ctx, c.executable, "core", "init", "--activation", "*")
	initialization.Env = c.environment
	if out, err := initialization.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	secret := &corev1.Secret{}
	if err := c.client.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: ClientSecret}, secret); err != nil {
		return err
	}
	for key, value := range secret.Data {
		if err := os.WriteFile(filepath.Join(c.certificate, key), value, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Process is a process of core.
type Process struct {
	cmd    *exec.Cmd
	done   chan struct{}
	log    *buffer.Buffer
	health string
}

// Start starts core with further arguments. The process is killed when the test ends.
func (c *Core) Start(t testing.TB, args ...string) (*Process, error) {
	t.Helper()
	p := &Process{done: make(chan struct{}), log: &buffer.Buffer{}, health: port.Free(t)}
	args = append([]string{"core", "start"}, args...)
	for flag, address := range map[string]string{
		"--health-probe-port": p.health, "--metrics-port": port.Free(t), "--webhook-port": port.Free(t),
	} {
		_, number, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		args = append(args, flag+"="+number)
	}
	p.cmd = exec.Command(c.executable, args...)
	p.cmd.Env, p.cmd.Stderr, p.cmd.Stdout = c.environment, p.log, p.log
	program.DieWithTest(p.cmd)
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("the log of core:\n%s", p.log.String())
		}
	})
	return p, nil
}

// run starts the process and waits for its end. The kernel kills the process with the thread that has started it.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // Core exits with an error when it is stopped.
		close(p.done)
	}
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ready reports whether core is ready.
func (p *Process) Ready(ctx context.Context) bool {
	return program.IsReady(ctx, "http://"+p.health+"/readyz")
}

// Exited reports whether the process has exited.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// WaitReady waits until core is ready.
func (p *Process) WaitReady(t testing.TB) {
	t.Helper()
	wait.Until(t, program.ReadyLimit, "core is ready", func() (string, bool) {
		if p.Exited() {
			t.Fatalf("core has exited:\n%s", p.log.String())
		}
		return p.log.String(), p.Ready(t.Context())
	})
}

// Stop stops core with SIGTERM, and waits until it has exited.
func (p *Process) Stop(testing.TB) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // The process may have exited.
	<-p.done
}
