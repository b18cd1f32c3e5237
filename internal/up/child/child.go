// Package child runs xpkg-controlplane, the program with etcd and the API server, as a
// child process.
//
// The child runs as long as the pipe to its standard input is open, so it stops when this process
// ends, even if this process is killed. It writes a line of JSON to its standard output when it accepts
// requests or cannot start, and a second one when all its health checks have passed and its controllers work.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// stopGrace is the time that Stop waits before it kills the child.
const stopGrace = 10 * time.Second

// Options configure the start of a control plane.
type Options struct {
	// Program is the path of xpkg-controlplane.
	Program string
	// DataDir is the directory of the state.
	DataDir string
	// Port is the port of the API server on the loopback interface. Zero means the port of the last
	// start, or a free one.
	Port int
	// Throwaway disables fsync and removes the state at the end. It is for tests.
	Throwaway bool
	// CRDOpenAPI publishes the schemas of custom resources in OpenAPI.
	CRDOpenAPI bool
	// Policies is the directory of admission policies that no client of the API can change; empty means none.
	Policies string
	// Log receives the log. The child inherits an *os.File, and can write to it after this process
	// has ended.
	Log io.Writer
}

func (o Options) args() []string {
	args := []string{"--data-dir=" + o.DataDir, "--port=" + strconv.Itoa(o.Port)}
	if o.Throwaway {
		args = append(args, "--throwaway")
	}
	if o.CRDOpenAPI {
		args = append(args, "--crd-openapi")
	}
	if o.Policies != "" {
		args = append(args, "--policies="+o.Policies)
	}
	return args
}

// Ready is the report of a control plane that accepts requests.
type Ready struct {
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Kubernetes is the version of the API server, for example "v1.37.1".
	Kubernetes string `json:"kubernetes"`
	// PID is the process of the control plane.
	PID int `json:"pid"`
}

// line is a line on the standard output of the child.
type line struct {
	Ready
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Healthy bool `json:"healthy"`
}

// Process is a running control plane.
type Process struct {
	Ready
	input io.Closer
	kill  func() error
	// healthy is closed after the second line.
	healthy chan struct{}
	done    chan struct{}
	err     error // to be read after done is closed
}

// Start starts a control plane, and returns when it accepts requests. It fails with ErrPortInUse,
// ErrDataDirInUse, ErrDataDirUnusable or ErrFailed, and with the cause of the context if the
// context ends first. If it fails, no process is left running.
func Start(ctx context.Context, o Options) (*Process, error) {
	cmd := exec.Command(o.Program, o.args()...)
	cmd.Env, cmd.Stderr = withoutProxies(os.Environ()), o.Log
	detachFromTerminal(cmd)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, ErrFailed.New(err, "cannot create a pipe to the control plane")
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, ErrFailed.New(err, "cannot create a pipe to the control plane")
	}
	if err := cmd.Start(); err != nil {
		return nil, ErrFailed.New(err, "cannot start the control plane")
	}
	p := &Process{input: input, kill: cmd.Process.Kill, healthy: make(chan struct{}), done: make(chan struct{})}
	first := make(chan []byte, 1)
	go func() {
		defer close(p.done)
		lines := bufio.NewReader(output)
		content, _ := lines.ReadBytes('\n') // An end without a line counts as an empty line.
		first <- content
		if content, _ := lines.ReadBytes('\n'); isHealthy(content) {
			close(p.healthy)
		}
		_, _ = io.Copy(io.Discard, lines)
		p.err = cmd.Wait()
	}()
	if err := p.await(ctx, first); err != nil {
		_ = p.Stop() // The child has reported its error.
		return nil, err
	}
	return p, nil
}

// await waits for the line of the child.
func (p *Process) await(ctx context.Context, first <-chan []byte) error {
	select {
	case content := <-first:
		return p.parse(content)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Process) parse(content []byte) error {
	if len(content) == 0 {
		<-p.done
		return ErrFailed.New(p.err, "the control plane ended before it was ready")
	}
	var l line
	if err := json.Unmarshal(content, &l); err != nil {
		return ErrFailed.New(err, "the control plane wrote an invalid report")
	}
	if l.Error != nil {
		code, ok := codes[l.Error.Code]
		if !ok {
			code = ErrFailed
		}
		return code.New(nil, "%s", l.Error.Message)
	}
	p.Ready = l.Ready
	return nil
}

func isHealthy(content []byte) bool {
	var l line
	return json.Unmarshal(content, &l) == nil && l.Healthy
}

// Healthy returns a channel that is closed when all health checks of the API server have passed and the controllers
// work, one or two seconds after Start returns. Only then a new data directory has the default roles and the
// ServiceAccounts of its namespaces.
func (p *Process) Healthy() <-chan struct{} { return p.healthy }

// Done returns a channel that is closed when the child has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the exit of the child, and returns its error, or nil if it stopped in order.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Stop stops the child and waits for its exit. After stopGrace it kills the child, which loses no
// write that the API server has acknowledged. It may be called more than once.
func (p *Process) Stop() error {
	// The pipe is closed already if the child has exited or Stop was called before.
	_ = p.input.Close()
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		err := p.kill()
		<-p.done
		return errors.Join(fmt.Errorf("the control plane did not stop within %s and was killed", stopGrace), err)
	}
}
