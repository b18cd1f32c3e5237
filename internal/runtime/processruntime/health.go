package processruntime

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
)

const (
	// probePatience is the timeout of one probe.
	probePatience = time.Second
	// probeEvery is the pause between two probes of a program that does not answer.
	probeEvery = time.Second
	// probeLimit is how long a provider may refuse connections to its health port
	// before it counts as one that has none.
	probeLimit = 10 * time.Second
)

// state returns the state of a runtime.
func (p *Runtime) state(ctx context.Context, program runtime.Workload, l layout) runtime.State {
	status, known := p.opts.Supervisor.Status(program.Owner.Revision.Name)
	if !known || !status.Running {
		return runtime.State{Reason: runtime.CrashReason(status.Restarts), Message: crash(status)}
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
		}
		return s
	}
	ask := p.provides
	if program.Owner.Package.Kind == v1.FunctionKind {
		ask = p.serves
	}
	if problem := ask(ctx, program, l, ran); problem != "" {
		return runtime.State{Reason: runtime.ReasonNotServing, Message: problem, Again: probeEvery}
	}
	s := runtime.State{Available: true, Again: max(probeEvery, l.renew.Sub(p.opts.Now()))}
	if program.Owner.Package.Kind == v1.FunctionKind {
		s.Endpoint = "dns:///localhost:" + strconv.Itoa(l.ports.serving)
	}
	return s
}

// crash describes why a runtime does not run.
func crash(s sandbox.Status) string {
	if s.LastExit == nil {
		return "the runtime has not been started yet"
	}
	return "the runtime was started and ended: " + s.LastExit.Reason
}

// provides reports whether a provider is ready. The health port has no standard name. A
// provider that does not listen there may not be configurable, and is ready when it runs.
func (p *Runtime) provides(ctx context.Context, _ runtime.Workload, l layout, ran time.Duration) string {
	if l.ports.health == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
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

// serves asks a function for a connection: with TLS where it has a certificate. It may
// refuse us after that, since we show none.
func (p *Runtime) serves(ctx context.Context, program runtime.Workload, l layout, _ time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", loopback(l.ports.serving))
	if err != nil {
		return fmt.Sprintf("the runtime does not listen on port %d", l.ports.serving)
	}
	defer conn.Close()
	if program.ServerSecret == "" {
		return ""
	}
	// Whether it is the right one, its callers check: here it only has to answer.
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) // See above.
	if err := c.HandshakeContext(ctx); err != nil {
		return fmt.Sprintf("the runtime does not serve TLS on port %d", l.ports.serving)
	}
	return ""
}
