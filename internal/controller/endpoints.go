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

// endpoints are what a manager tells the world about itself, whether it leads or
// stands by. It answers /healthz for as long as the process works, and /readyz once
// it does what it is there for.
type endpoints struct{ ready atomic.Bool }

// headerTimeout bounds how long a request may take to say what it wants.
const headerTimeout = 5 * time.Second

// serve serves until the function that it gives is called.
func (e *endpoints) serve(o Options) (stop func(), err error) {
	health := http.NewServeMux()
	health.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	health.HandleFunc("/readyz", e.readyz)
	metrics := http.NewServeMux()
	metrics.Handle("/metrics", promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
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
		http.Error(w, "the controllers do not run yet", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprint(w, "ok")
}

// serve serves at an address, or nowhere when that is empty.
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
		// Nobody waits for an answer of a process that ends.
		_ = errors.Join(s.Close(), <-ended)
	}, nil
}
