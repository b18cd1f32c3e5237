package controller

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
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
