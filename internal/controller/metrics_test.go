package controller

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// TestAManagerWithoutPackagesIsNotAbsent checks that no alert about an absent metric fires in a cluster without
// packages, and that it fires once the manager has stopped.
func TestAManagerWithoutPackagesIsNotAbsent(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join("..", "..", "charts", "xpkg", "monitoring", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	absent := regexp.MustCompile(`absent\((\w+)\)`).FindAllStringSubmatch(string(rules), -1)
	if len(absent) == 0 {
		t.Fatal("no alert has absent()")
	}
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	reported := func() map[string]bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, f := range families {
			out[f.GetName()] = true
		}
		return out
	}
	unregister := newMetrics().register(registry, fake.NewClientBuilder().WithScheme(scheme).Build())
	running := reported()
	unregister()
	stopped := reported()
	for _, m := range absent {
		if !running[m[1]] || stopped[m[1]] {
			t.Errorf(
				"%s is reported by a manager without packages: %v, by a stopped one: %v", m[1], running[m[1]], stopped[m[1]],
			)
		}
	}
}

// The kinds of the active revision of a Provider are counted by their state.
func TestKindsOfProvidersAreCounted(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	var revisions []client.Object
	for name, state := range map[string]v1.RevisionState{"now": v1.RevisionActive, "before": v1.RevisionInactive} {
		rev := &v1.ProviderRevision{}
		rev.Name, rev.Labels, rev.Spec.DesiredState = name, map[string]string{v1.LabelPackage: "boats"}, state
		rev.Status.Kinds = &v1.KindCounts{Active: 2, Offered: 9}
		revisions = append(revisions, rev)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(revisions...).Build()
	registry := prometheus.NewRegistry()
	registry.MustRegister(packageMetrics{reader})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == kindsMetric.Name {
				got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if want := map[string]float64{"boats active": 2, "boats inactive": 7}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
