package controller

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// endpoints serve the health checks and metrics of a manager, whether it leads or stands by. /healthz
// succeeds while the process works, and /readyz once the manager reconciles or stands by.
type endpoints struct{ ready atomic.Bool }

// headerTimeout limits how long a client may take to send the headers of a request.
const headerTimeout = 5 * time.Second

// serve serves until the returned function is called.
func (e *endpoints) serve(o Options) (stop func(), err error) {
	health := http.NewServeMux()
	health.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	health.HandleFunc("/readyz", e.readyz)
	metrics := http.NewServeMux()
	metrics.Handle("/metrics", promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError,
	}))
	stopHealth, err := serve(o.HealthAddress, health)
	if err != nil {
		return nil, fmt.Errorf("health checks: %w", err)
	}
	stopMetrics, err := serve(o.MetricsAddress, metrics)
	if err != nil {
		stopHealth()
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return func() { stopHealth(); stopMetrics() }, nil
}

func (e *endpoints) readyz(w http.ResponseWriter, _ *http.Request) {
	if !e.ready.Load() {
		http.Error(w, "the controllers are not running yet", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprint(w, "ok")
}

// serve serves at an address until the returned function is called. An empty address serves nothing.
func serve(address string, h http.Handler) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	return func() {
		_ = errors.Join(s.Close(), <-ended)
	}, nil
}
