package processruntime

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
)

const (
	// probeTimeout is the timeout of one probe.
	probeTimeout = time.Second
	// probeInterval is the pause between two probes of a runtime that does not serve.
	probeInterval = time.Second
	// probeLimit is the running time after which a provider that refuses connections to its health
	// port counts as a provider without health checks.
	probeLimit = 10 * time.Second
)

// state returns the state of a runtime.
func (p *Runtime) state(ctx context.Context, program runtime.Workload, l layout) runtime.State {
	status, known := p.opts.Supervisor.Status(runtime.ProcessName(program.Owner.Revision))
	if !known || !status.Running {
		return runtime.State{
			Reason: runtime.CrashReason(status.Restarts), Message: crash(status), Log: p.lastWords(ctx, program, status),
		}
	}
	ran := p.opts.Now().Sub(status.Since)
	if ran < l.settle {
		s := runtime.State{
			Reason: runtime.ReasonStarting, Again: l.settle - ran,
			Message: fmt.Sprintf("the runtime has started, and is available when it has run for %s without a restart", l.settle),
		}
		if status.LastExit != nil {
			// The message does not change with each restart.
			s.Reason, s.Message = runtime.CrashReason(status.Restarts), crash(status)
			s.Log = p.lastWords(ctx, program, status)
		}
		return s
	}
	probe := p.probeProvider
	if program.Owner.Package.Kind == v1.FunctionKind {
		probe = p.probeFunction
	}
	if problem := probe(ctx, program, l, ran); problem != "" {
		return runtime.State{Reason: runtime.ReasonNotServing, Message: problem, Again: probeInterval}
	}
	s := runtime.State{Available: true, Again: max(probeInterval, l.renew.Sub(p.opts.Now()))}
	if program.Owner.Package.Kind == v1.FunctionKind {
		s.Endpoint = "dns:///localhost:" + strconv.Itoa(l.ports.serving)
	}
	return s
}

// lastLines is the number of lines of the log of a program that exited.
const lastLines = 100

// lastWords returns the end of the log of a program that has exited.
func (p *Runtime) lastWords(ctx context.Context, program runtime.Workload, status sandbox.Status) string {
	if !program.ExplainsExit || status.LastExit == nil {
		return ""
	}
	r, err := p.opts.Supervisor.Logs(ctx, runtime.ProcessName(program.Owner.Revision), false, lastLines)
	if err != nil {
		return "" // The reason of the exit does not depend on it.
	}
	defer r.Close()
	text, _ := io.ReadAll(r)
	return string(text)
}

// crash describes why a runtime does not run.
func crash(s sandbox.Status) string {
	if s.LastExit == nil {
		return "the runtime has not been started yet"
	}
	return "the runtime was started and ended: " + s.LastExit.Reason
}

// probeProvider returns the reason why a provider is not ready, or "". There is no standard way to
// set the health port: a provider that does not listen on it within probeLimit may not support it,
// and counts as ready.
func (p *Runtime) probeProvider(ctx context.Context, _ runtime.Workload, l layout, ran time.Duration) string {
	if l.ports.health == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(l.ports.health)+"/readyz", nil)
	if err != nil {
		return err.Error()
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		if ran < probeLimit {
			return "the runtime does not respond on its health port yet"
		}
		return ""
	}
	if err := res.Body.Close(); err != nil || res.StatusCode >= http.StatusInternalServerError {
		return fmt.Sprintf("its readiness probe fails: %s", res.Status)
	}
	return ""
}

// probeFunction returns the reason why a function does not serve, or "". It makes a TLS handshake
// if the function has a certificate. The function may close the connection after that, because the
// probe has no client certificate.
func (p *Runtime) probeFunction(ctx context.Context, program runtime.Workload, l layout, _ time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", loopback(l.ports.serving))
	if err != nil {
		return fmt.Sprintf("the runtime does not listen on port %d", l.ports.serving)
	}
	defer conn.Close()
	if program.ServerSecret == "" {
		return ""
	}
	// The callers of the function verify its certificate. The probe only checks that it serves TLS.
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) // See above.
	if err := c.HandshakeContext(ctx); err != nil {
		return fmt.Sprintf("the runtime does not serve TLS on port %d", l.ports.serving)
	}
	return ""
}
