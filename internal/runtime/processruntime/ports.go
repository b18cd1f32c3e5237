package processruntime

import (
	"fmt"
	"maps"
	"net"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/ports"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
)

// Variables with which the ports of providers are configured: the names that upjet
// generates, and the names in controller-runtime's scaffold.
const (
	metricsVariable = "METRICS_BIND_ADDRESS"
	healthVariable  = "HEALTH_PROBE_BIND_ADDRESS"
	webhookVariable = "WEBHOOK_PORT"
	// addressFlag is the flag of functions that were created from a template of Crossplane. Such
	// functions read no variable for the address.
	addressFlag = "--address"
)

// assigned holds the ports of one runtime.
type assigned struct {
	metrics, health int
	// serving is the port on which a provider serves webhooks, or a function its calls.
	serving int
	// fixed is the default port if a provider was found to serve webhooks there, or 0.
	fixed int
}

// assignments holds the ports of all runtimes. A runtime that restarts keeps its ports.
type assignments struct {
	mu  sync.Mutex
	all map[string]assigned
}

// of returns the ports of a process, for a package of a kind. A function keeps the default port if it is free,
// because some functions have no flag for another one.
func (p *assignments) of(process, kind string) (assigned, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.all[process]; ok {
		return a, nil
	}
	var a assigned
	for _, port := range []*int{&a.metrics, &a.health, &a.serving} {
		var err error
		if *port, err = p.any(a); err != nil {
			return assigned{}, err
		}
	}
	if kind == v1.FunctionKind && p.free(manifests.ServiceNumber) == nil {
		a.serving = manifests.ServiceNumber
	}
	if p.all == nil {
		p.all = map[string]assigned{}
	}
	p.all[process] = a
	return a, nil
}

// any returns a free port that is not assigned to another runtime.
func (p *assignments) any(among assigned) (int, error) {
	for {
		l, err := ports.Listen("")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, err
		}
		if !among.has(port) && !p.given(port) {
			return port, nil
		}
	}
}

// free fails if another process listens on a port, or the port is assigned to a runtime.
func (p *assignments) free(port int) error {
	if p.given(port) {
		return fmt.Errorf("port %d is assigned to another runtime", port)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// given reports whether a port is assigned to a runtime. The caller holds the mutex.
func (p *assignments) given(port int) bool {
	for _, a := range p.all {
		if a.has(port) {
			return true
		}
	}
	return false
}

func (a assigned) has(port int) bool {
	return a.metrics == port || a.health == port || a.serving == port || a.fixed == port
}

// fix records that a process serves on a port other than the assigned one.
func (p *assignments) fix(process string, port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.all[process]; ok {
		a.fixed = port
		p.all[process] = a
	}
}

func (p *assignments) release(process string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, process)
}

// defaultHealthPort is the port of health checks of programs that read no variable for it, the default of
// controller-runtime's scaffold.
const defaultHealthPort = 8081

// relocated maps the default ports to those of the runtime, which no other runtime can take while this one restarts. A
// port that the configuration sets to its default stays.
func (a assigned) relocated() map[int]int {
	out := map[int]int{manifests.MetricsNumber: a.metrics, defaultHealthPort: a.health, manifests.ServiceNumber: a.serving}
	maps.DeleteFunc(out, func(_, to int) bool { return to == 0 })
	return out
}

// environment returns the variables that set the ports of a provider. Variables of the
// configuration override them.
func (a assigned) environment(kind string) []corev1.EnvVar {
	out := []corev1.EnvVar{
		{Name: metricsVariable, Value: loopback(a.metrics)},
		{Name: healthVariable, Value: loopback(a.health)},
	}
	if kind == v1.ProviderKind {
		out = append(out, corev1.EnvVar{Name: webhookVariable, Value: strconv.Itoa(a.serving)})
	}
	return out
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
