package manager

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/plan"
)

// metrics are what Prometheus is told, beside what the controller library tells
// of its queues (docs/reference/metrics.md).
type metrics struct {
	writes   *prometheus.CounterVec
	failures *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "xpkg_object_writes_total", Help: "Objects of packages that were written, by what was done and kind.",
		}, []string{"action", "kind"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "xpkg_failures_total", Help: "Reconciliations that failed, by the code of the failure.",
		}, []string{"code"}),
	}
}

// wrote counts the changes of a plan that were carried out.
func (m *metrics) wrote(p plan.Plan, written map[plan.Ref]plan.Written) {
	for _, c := range p.Changes {
		if _, ok := written[c.Ref]; ok {
			m.writes.WithLabelValues(strings.ReplaceAll(string(c.Action), " ", "_"), c.Ref.Kind).Inc()
		}
	}
}

// register makes the metrics known until the function that it gives is called.
func (m *metrics) register(registry prometheus.Registerer, reader client.Reader) (unregister func()) {
	var mine []prometheus.Collector
	for _, c := range []prometheus.Collector{m.writes, m.failures, packageMetrics{reader}} {
		// Another manager of this process may be registered, as in tests; then its
		// metrics stay.
		if registry.Register(c) == nil {
			mine = append(mine, c)
		}
	}
	return func() {
		for _, c := range mine {
			registry.Unregister(c)
		}
	}
}

// packageMetrics tells of every package what its status says, at the moment when
// it is asked, so that nothing of a package stays when it is gone.
type packageMetrics struct{ reader client.Reader }

var (
	packageInfo = prometheus.NewDesc("xpkg_package_info", "An installed package; always 1.",
		[]string{"kind", "package", "reference", "revision", "digest"}, nil)
	packageReady = prometheus.NewDesc("xpkg_package_ready", "Whether what a package asks for is in place and healthy.",
		[]string{"kind", "package"}, nil)
	packageStalled = prometheus.NewDesc("xpkg_package_stalled", "Whether a package waits for somebody to mend something.",
		[]string{"kind", "package", "reason"}, nil)
)

// Describe implements prometheus.Collector.
func (packageMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- packageInfo
	out <- packageReady
	out <- packageStalled
}

// Collect implements prometheus.Collector.
func (m packageMetrics) Collect(out chan<- prometheus.Metric) {
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if m.reader.List(context.Background(), list) != nil {
			continue
		}
		for _, p := range list.Packages() {
			s := p.PackageStatus()
			out <- gauge(packageInfo, 1, kind, p.GetName(), p.PackageSpec().Package, s.CurrentRevision, s.ResolvedDigest)
			out <- gauge(packageReady, boolean(p.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue), kind, p.GetName())
			stalled := p.GetCondition(v1.TypeStalled)
			out <- gauge(packageStalled, boolean(stalled.Status == corev1.ConditionTrue), kind, p.GetName(), string(stalled.Reason))
		}
	}
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
