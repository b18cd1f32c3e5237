package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// before returns the kubeconfig of a proxy that runs a function before the request with that number, counted from 1, of those with a method
// whose path has a suffix.
func (b bench) before(t *testing.T, method, suffix string, number int32, meanwhile func()) string {
	t.Helper()
	proxy := b.forward(t)
	var count atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method && strings.HasSuffix(r.URL.Path, suffix) && count.Add(1) == number {
			meanwhile()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server)
}

// TestUpdatesAreStaleIfAPackageChangesWhileTheyArePlanned proves that an update does not return fields that another client has changed since
// the command has read the package.
func TestUpdatesAreStaleIfAPackageChangesWhileTheyArePlanned(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"yawl", "punt"} {
		b.push(t, "stale/"+name, "v1.0.0", name)
		b.push(t, "stale/"+name, "v2.0.0", name)
		b.must(t, 0, "install", "provider", b.registry+"/stale/"+name+":v1.0.0", name, "--wait", "1m")
	}
	t.Cleanup(func() { b.run(t, b.kubeconfig, "uninstall", "yawl", "punt", "--yes", "--wait", "1m") })
	for name, tc := range map[string]struct {
		args []string
		// list is the first list of the plan.
		list int32
	}{
		"one":     {[]string{"update", "yawl", "v2.0.0"}, 3},
		"several": {[]string{"update", "yawl@v2.0.0", "punt@v2.0.0"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			change := func() { b.must(t, 0, "update", "yawl", "--revision-history-limit", "5", "--yes") }
			e := b.run(t, b.before(t, http.MethodGet, "/providers", tc.list, change), append(tc.args, "--yes")...)
			p := b.provider(t, "yawl")
			if e.code != 9 || !strings.Contains(e.errors, "PlanMoved: the plan to update provider/yawl is stale: the generation of the package was 1 and is 2") {
				t.Errorf("exit code %d\n%s%s", e.code, e.out, e.errors)
			}
			if p.Spec.RevisionHistoryLimit == nil || *p.Spec.RevisionHistoryLimit != 5 || !strings.HasSuffix(p.Spec.Package, ":v1.0.0") {
				t.Errorf("got %s with the history limit %v", p.Spec.Package, p.Spec.RevisionHistoryLimit)
			}
			b.must(t, 0, "uninstall", "yawl", "--yes", "--wait", "1m")
			b.must(t, 0, "install", "provider", b.registry+"/stale/yawl:v1.0.0", "yawl", "--wait", "1m")
		})
	}
}
