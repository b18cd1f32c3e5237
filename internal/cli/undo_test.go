package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/revision"
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

// TestAtomicCommandsKeepPackagesThatOthersNeed proves that a command keeps a package that another command has planned to depend on, even if
// that command writes its package just before the change is undone.
func TestAtomicCommandsKeepPackagesThatOthersNeed(t *testing.T) {
	b := newBench(t)
	first, second := b.push(t, "needed/skiff", "v1.0.0", "Skiff"), b.push(t, "needed/skiff", "v2.0.0", "Skiff")
	top := b.pushDependent(t, "needed/top", "v1.0.0", b.registry+"/needed/skiff >=v2.0.0", "Top")
	t.Cleanup(func() { b.run(t, b.kubeconfig, "uninstall", "skiff", "top", "--yes", "--wait", "1m") })
	needs := func() { b.must(t, 0, "install", "provider", top, "top") }
	for name, tc := range map[string]struct {
		method string
		number int32
		args   []string
		stays  string
	}{
		"install": {http.MethodDelete, 1, []string{"install", "provider", second, "skiff"}, "New packages with custom resources or dependents stay: provider/skiff"},
		"update":  {http.MethodPut, 2, []string{"update", "skiff", "v2.0.0"}, "Packages stay at the new version that other packages require now: provider/skiff"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.method == http.MethodPut {
				b.must(t, 0, "install", "provider", first, "skiff", "--wait", "1m")
			}
			e := b.run(t, b.before(t, tc.method, "/providers/skiff", tc.number, needs), append(tc.args, "--wait", "1ns", "--atomic", "--yes")...)
			if e.code != 11 || !strings.Contains(e.errors, tc.stays) {
				t.Errorf("exit code %d\n%s%s", e.code, e.out, e.errors)
			}
			if p := b.provider(t, "skiff"); p.Spec.Package != second || p.Annotations[revision.AnnotationUndo] != "" {
				t.Errorf("got %s with %v, want %s", p.Spec.Package, p.Annotations, second)
			}
			b.must(t, 0, "install", "provider", top, "top", "--wait", "1m")
			b.must(t, 0, "uninstall", "skiff", "top", "--yes", "--wait", "1m")
		})
	}
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

// TestLostResponsesAreUndone proves that a command knows a package that it has written although the connection ended before the response: it
// waits for the package, and undoes its change.
func TestLostResponsesAreUndone(t *testing.T) {
	b := newBench(t)
	first, second := b.push(t, "lost/gig", "v1.0.0", "Gig"), b.push(t, "lost/gig", "v2.0.0", "Gig")
	t.Cleanup(func() { b.run(t, b.kubeconfig, "uninstall", "gig", "--yes", "--wait", "1m") })
	loses := func(method string) string {
		proxy := b.forward(t)
		var once sync.Once
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == method {
				once.Do(func() {
					proxy.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				})
			}
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		return kubeconfigOf(t, server)
	}

	e := b.run(t, loses(http.MethodPost), "install", "provider", first, "gig", "--wait", "1ns", "--atomic")
	if e.code != 11 || !strings.Contains(e.errors, "All changes were undone: provider/gig was deleted.") {
		t.Errorf("exit code %d\n%s", e.code, e.errors)
	}
	b.absent(t, "gig")
	b.must(t, 0, "install", "provider", first, "gig", "--wait", "1m")
	e = b.run(t, loses(http.MethodPut), "update", second, "--wait", "1ns", "--atomic", "--yes")
	if e.code != 11 || !strings.Contains(e.errors, "provider/gig was returned to "+first) {
		t.Errorf("exit code %d\n%s", e.code, e.errors)
	}
	if p := b.provider(t, "gig"); p.Spec.Package != first || p.Annotations[revision.AnnotationUndo] != "" {
		t.Errorf("got %s with %v", p.Spec.Package, p.Annotations)
	}
}

// TestWaitsTolerateOutages proves that a command does not fail, and undo its changes, because the API server does not carry out single
// requests while it waits.
func TestWaitsTolerateOutages(t *testing.T) {
	b := newBench(t)
	scow := b.push(t, "outage/scow", "v1.0.0", "Scow")
	t.Cleanup(func() { b.run(t, b.kubeconfig, "uninstall", "scow", "--yes", "--wait", "1m") })
	var count atomic.Int32
	proxy := b.forward(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/providers/scow") {
			switch n := count.Add(1); n {
			case 1, 2, 3:
				http.Error(w, "overloaded", []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}[n-1])
				return
			case 4:
				panic(http.ErrAbortHandler)
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	kubeconfig := kubeconfigOf(t, server)
	for _, args := range [][]string{{"install", "provider", scow, "scow", "--wait", "1m", "--atomic"}, {"uninstall", "scow", "--yes", "--wait", "1m"}} {
		count.Store(0)
		if args[0] == "uninstall" {
			count.Store(-1) // The command reads the package first.
		}
		if e := b.run(t, kubeconfig, args...); e.code != 0 || count.Load() < 4 {
			t.Errorf("%q: exit code %d after %d reads\n%s", args, e.code, count.Load(), e.errors)
		}
	}
}
