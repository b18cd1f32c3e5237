package controller

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Metric describes a metric of the manager, in addition to the metrics of controller-runtime.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// The manager's metrics.
var (
	writesMetric = Metric{
		"xpkg_object_writes_total", "counter", "Objects of packages that were written, by action.",
		[]string{"action", "kind"},
	}
	failuresMetric = Metric{
		"xpkg_failures_total", "counter", "Reconciliations that failed, by the code of the failure.", []string{"code"},
	}
	managerMetric = Metric{
		"xpkg_manager_info", "gauge", "The manager that reconciles packages; always 1. A standby does not report it.",
		[]string{"version"},
	}
	infoMetric = Metric{
		"xpkg_package_info", "gauge", "An installed package; always 1.",
		[]string{"kind", "package", "reference", "revision", "digest"},
	}
	readyMetric = Metric{
		"xpkg_package_ready", "gauge", "1 if a package is healthy with the content of its current spec, else 0.",
		[]string{"kind", "package"},
	}
	kindsMetric = Metric{
		"xpkg_provider_kinds", "gauge", "Managed resources of a Provider, by their state: active or inactive.",
		[]string{"package", "state"},
	}
	stalledMetric = Metric{
		"xpkg_package_stalled", "gauge", "1 if a package waits for a user to fix a problem, else 0.",
		[]string{"kind", "package", "reason"},
	}
)

// Metrics lists the manager's metrics, for their documentation.
func Metrics() []Metric {
	return []Metric{managerMetric, infoMetric, readyMetric, stalledMetric, kindsMetric, writesMetric, failuresMetric}
}

func (m Metric) counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

func (m Metric) gauge(v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(m.desc(), prometheus.GaugeValue, v, labels...)
}

func (m Metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }

// metrics holds the counters of the manager.
type metrics struct {
	writes   *prometheus.CounterVec
	failures *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{writes: writesMetric.counter(), failures: failuresMetric.counter()}
}

// countWrites counts the changes of a plan that were carried out.
func (m *metrics) countWrites(p plan.Plan, written map[plan.Ref]plan.Written) {
	for _, c := range p.Changes {
		if _, ok := written[c.Ref]; ok {
			m.writes.WithLabelValues(strings.ReplaceAll(string(c.Action), " ", "_"), c.Ref.Kind).Inc()
		}
	}
}

// register registers the metrics until the returned function is called.
func (m *metrics) register(registry prometheus.Registerer, reader client.Reader) (unregister func()) {
	var mine []prometheus.Collector
	for _, c := range []prometheus.Collector{m.writes, m.failures, packageMetrics{reader}} {
		// In tests, another manager of this process may have registered its metrics, which stay.
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

// packageMetrics computes the metric of the manager, and those of packages from their statuses when they are collected,
// so that the metrics of a package end with it.
type packageMetrics struct{ reader client.Reader }

// Describe implements prometheus.Collector.
func (packageMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, m := range []Metric{managerMetric, infoMetric, readyMetric, stalledMetric, kindsMetric} {
		out <- m.desc()
	}
}

// Collect implements prometheus.Collector.
func (m packageMetrics) Collect(out chan<- prometheus.Metric) {
	out <- managerMetric.gauge(1, version.Version)
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if m.reader.List(context.Background(), list) != nil {
			continue
		}
		for _, p := range list.Packages() {
			s := p.PackageStatus()
			out <- infoMetric.gauge(1, kind, p.GetName(), p.PackageSpec().Package, s.CurrentRevision, s.ResolvedDigest)
			out <- readyMetric.gauge(boolean(p.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue), kind, p.GetName())
			stalled := p.GetCondition(v1.TypeStalled)
			out <- stalledMetric.gauge(
				boolean(stalled.Status == corev1.ConditionTrue), kind, p.GetName(), string(stalled.Reason),
			)
		}
	}
	revisions := v1.NewPackage(v1.ProviderKind).NewRevisionList()
	if m.reader.List(context.Background(), revisions, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	for _, rev := range revisions.Revisions() {
		if k := rev.RevisionStatus().Kinds; k != nil && revision.IsActive(rev) {
			name := rev.GetLabels()[v1.LabelPackage]
			out <- kindsMetric.gauge(float64(k.Active), name, "active")
			out <- kindsMetric.gauge(float64(k.Offered-k.Active), name, "inactive")
		}
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
