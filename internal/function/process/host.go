// Package process runs the functions of packages as processes of this machine, with the program and the isolation of
// the package runtimes of a local control plane.
package process

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/ports"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ErrFunctionStart is the code for a function that ends, or does not serve.
var ErrFunctionStart = errcode.Code{
	Name: "FunctionStart", Class: errcode.Unhealthy,
	Cause: "The program of a function ended, or does not serve at its address.",
	Fix:   "Correct the function; the end of its log is in the message. A function must accept the flags --insecure and --address.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrFunctionStart} }

const (
	// pollInterval is the pause between two attempts to connect to a function that starts.
	pollInterval = 20 * time.Millisecond
	// logLines is the number of lines of a log in a message.
	logLines = 10
	// maxLog limits the bytes of a log in a message.
	maxLog = 4096
)

// Host runs functions until it is closed.
type Host struct{ supervisor *sandbox.Supervisor }

// New returns a host without functions. It uses the folder alone, for files and logs.
func New(dir string, images sandbox.Images, log *slog.Logger) (*Host, error) {
	s, err := sandbox.New(sandbox.Options{Dir: dir, Images: images, Log: log, Grace: time.Second})
	if err != nil {
		return nil, err
	}
	return &Host{s}, nil
}

// Close ends all functions.
func (h *Host) Close() error { return h.supervisor.Close() }

// Start starts the function in an image, and returns its address when it serves there. The function serves without TLS
// on the loopback interface only. Name is a DNS subdomain.
func (h *Host) Start(
	ctx context.Context, name string, origin fetch.Origin, digest oci.Digest,
) (address string, err error) {
	if address, err = freeAddress(); err != nil {
		return "", ErrFunctionStart.New(err, "cannot find a free port for the function %s", name)
	}
	spec := sandbox.Spec{
		Name: name, Origin: origin, Digest: digest, MoreArgs: []string{"--insecure", "--address=" + address},
		// Several functions would serve metrics on the same port.
		Env: map[string]string{"METRICS_BIND_ADDRESS": "127.0.0.1:0", "HEALTH_PROBE_BIND_ADDRESS": "127.0.0.1:0"},
	}
	if err := h.supervisor.Ensure(ctx, spec); err != nil {
		return "", err
	}
	return address, h.await(ctx, name, address)
}

func freeAddress() (string, error) {
	l, err := ports.Listen("127.0.0.1")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// await waits until a function listens.
func (h *Host) await(ctx context.Context, name, address string) error {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if s, _ := h.supervisor.Status(name); s.LastExit != nil {
			return ErrFunctionStart.New(h.reason(s.LastExit.Reason, name), "the function %s was started and ended", name)
		}
		select {
		case <-ctx.Done():
			return ErrFunctionStart.New(
				h.reason(context.Cause(ctx).Error(), name), "the function %s does not serve at %s", name, address,
			)
		case <-poll.C:
		}
	}
}

// reason returns a reason with the end of the log of a function.
func (h *Host) reason(reason, name string) error {
	if log := h.Log(name); log != "" {
		return fmt.Errorf("%s\n%s", reason, log)
	}
	return fmt.Errorf("%s", reason)
}

// Log returns the end of the log of a function, or "".
func (h *Host) Log(name string) string {
	r, err := h.supervisor.Logs(context.Background(), name, false, logLines)
	if err != nil {
		return ""
	}
	defer r.Close()
	raw, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw[max(0, len(raw)-maxLog):]))
}
