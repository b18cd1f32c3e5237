package registry

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
)

// metrics counts requests by the part of the server and the class of the status, never by repository, so the metrics
// reveal no names.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "xpkg_registry_requests_total", Help: "Requests by part of the server, method and class of the status.",
		}, []string{"part", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "xpkg_registry_request_seconds", Help: "Duration of requests by part of the server.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30},
		}, []string{"part"}),
	}
	m.registry.MustRegister(m.requests, m.seconds)
	return m
}

// handler returns a handler that serves the metrics and the numbers of damaged repositories and contents.
func (m *metrics) handler(found storage.Damage) http.Handler {
	repositories := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "xpkg_registry_damaged_repositories",
		Help: "Repositories that are refused because their lists of versions are damaged, among those that the client may read.",
	})
	contents := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "xpkg_registry_damaged_contents",
		Help: "Manifests and blobs that were found damaged and are not served, in repositories that the client may read.",
	})
	repositories.Set(float64(found.Repositories))
	contents.Set(float64(found.Contents))
	ofClient := prometheus.NewRegistry()
	ofClient.MustRegister(repositories, contents)
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, ofClient}, promhttp.HandlerOpts{})
}

// serveMetrics serves the metrics to users with a valid token: the number of requests to a private part would otherwise
// be public.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if subject, found := s.identifier.subject(r); found != validCredentials || subject.IsAnonymous() {
		w.Header().Set("WWW-Authenticate", `Basic realm="xpkg"`)
		protocol.WriteError(
			w, r, http.StatusUnauthorized, protocol.CodeUnauthorized, "the metrics need a token of the server",
		)
		return
	}
	s.metrics.handler(s.damageIn(r)).ServeHTTP(w, r)
}

// count returns a handler that counts the requests to another one.
func (m *metrics) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, recorder := time.Now(), &statusRecorder{ResponseWriter: w}
		next.ServeHTTP(recorder, r)
		part := partOf(r.URL.Path)
		m.seconds.WithLabelValues(part).Observe(time.Since(start).Seconds())
		m.requests.WithLabelValues(part, methodOf(r.Method), strconv.Itoa(recorder.status/100)+"xx").Inc()
	})
}

func partOf(path string) string {
	switch {
	case strings.HasPrefix(path, protocol.Root):
		return "distribution"
	case path == tokenPath, path == exchangePath:
		return "tokens"
	case strings.HasPrefix(path, "/api/"):
		return "api"
	}
	return "pages"
}

// methodOf returns a method, and "other" for unusual ones, of which a client could send any number.
func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete:
		return method
	}
	return "other"
}
