package cli_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// intercepted returns the kubeconfig of a proxy to the API server that calls a function for each request. It forwards a
// request unless the function has handled it.
func (b bench) intercepted(t *testing.T, handles func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	proxy := b.forward(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !handles(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server)
}

// withoutTransactions returns the kubeconfig of a proxy to an API server that serves no transactions, which calls a
// function before each other request.
func (b bench) withoutTransactions(t *testing.T, before func(*http.Request)) string {
	t.Helper()
	return b.intercepted(t, func(w http.ResponseWriter, r *http.Request) bool {
		isHidden := strings.HasSuffix(r.URL.Path, "/transactions")
		if isHidden {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		} else {
			before(r)
		}
		return isHidden
	})
}

// refuse responds as an API server that refuses a request.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(
		w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code,
	)
}

// before returns the kubeconfig of a proxy that runs a function before the request with that number, counted from 1, of
// those with a method whose path has a suffix.
func (b bench) before(t *testing.T, method, suffix string, number int32, meanwhile func()) string {
	t.Helper()
	var count atomic.Int32
	return b.intercepted(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == method && strings.HasSuffix(r.URL.Path, suffix) && count.Add(1) == number {
			meanwhile()
		}
		return false
	})
}

// TestUpdatesAreStaleIfAPackageChangesWhileTheyArePlanned proves that an update does not return fields that another
// client has changed since the command has read the package.
func TestUpdatesAreStaleIfAPackageChangesWhileTheyArePlanned(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"yawl", "punt"} {
		b.push(t, "stale/"+name, "v1.0.0", name)
		b.push(t, "stale/"+name, "v2.0.0", name)
		b.must(t, 0, "install", "provider", b.registry+"/stale/"+name+":v1.0.0", name, "--wait", "1m")
	}
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "yawl", "punt", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
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
			if e.code != 9 || !strings.Contains(
				e.errors, "PlanMoved: the plan to update provider/yawl is stale: the generation of the package was 1 and is 2",
			) {
				t.Errorf("exit code %d\n%s%s", e.code, e.out, e.errors)
			}
			if p.Spec.RevisionHistoryLimit == nil || *p.Spec.RevisionHistoryLimit != 5 ||
				!strings.HasSuffix(p.Spec.Package, ":v1.0.0") {
				t.Errorf("got %s with the history limit %v", p.Spec.Package, p.Spec.RevisionHistoryLimit)
			}
			b.must(t, 0, "uninstall", "yawl", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
			b.must(t, 0, "install", "provider", b.registry+"/stale/yawl:v1.0.0", "yawl", "--wait", "1m")
		})
	}
}

// TestExplicitInstallsStayExplicit proves that a package that a user installs explicitly does not become a dependency
// again: not by a lock file that is being installed. A removal of dependencies keeps it, also if the user installs it
// just before its deletion.
func TestExplicitInstallsStayExplicit(t *testing.T) {
	b := newBench(t)
	first := b.push(t, "explicit/hull", "v1.0.0", "Hull")
	b.push(t, "explicit/hull", "v2.0.0", "Hull")
	top := b.pushDependent(t, "explicit/top", "v1.0.0", b.registry+"/explicit/hull <v2.0.0", "Top")
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "hull", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	explicit := func() {
		t.Helper()
		if p := b.provider(t, "hull"); graph.IsAutoInstalled(p) || p.Annotations[graph.AnnotationRequiredBy] != "" {
			t.Errorf("hull is a dependency: %v, %v", p.Labels, p.Annotations)
		}
	}

	lock := filepath.Join(t.TempDir(), "xpkg.lock")
	resolve(t, lock, top)
	install := func() {
		b.must(t, 0, "install", "provider", b.provider(t, "explicit-hull").Spec.Package, "explicit-hull").
			prints(t, "now installed explicitly")
	}
	// The command writes the packages itself where no manager carries out transactions.
	e := b.run(t, b.withoutTransactions(t, func(r *http.Request) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/providers/explicit-hull") {
			install()
		}
	}), "install", "--lock", lock)
	if p := b.provider(t, "explicit-hull"); e.code != 0 || graph.IsAutoInstalled(p) ||
		p.Annotations[graph.AnnotationRequiredBy] != "" {
		t.Errorf("exit code %d, %v, %v\n%s", e.code, p.Labels, p.Annotations, e.errors)
	}
	b.must(t, 0, "sync", "--lock", lock)
	if p := b.provider(t, "explicit-hull"); graph.IsAutoInstalled(p) {
		t.Error("the next command makes the package a dependency")
	}
	b.must(t, 0, "uninstall", "explicit-top", "explicit-hull", "--yes", "--on-delete", "cascade=100", "--wait", "1m")

	b.must(t, 0, "install", "provider", first, "hull", "--wait", "1m")
	install = func() { b.must(t, 0, "install", "provider", first, "hull").prints(t, "now installed explicitly") }
	b.patch(t, b.provider(t, "hull"), `{"metadata":{"labels":{"xpkg.dev/auto-installed":"true"}}}`)
	e = b.run(t, b.before(t, http.MethodDelete, "/providers/hull", 1, install), "autoremove", "--yes")
	if e.code != 9 || !strings.Contains(e.errors, "PlanMoved: ") {
		t.Errorf("exit code %d\n%s", e.code, e.errors)
	}
	explicit()
}

// TestDryRunStatesLabelsOfDependencies proves that a dry run announces the label that completes the interrupted install
// of a dependency.
func TestDryRunStatesLabelsOfDependencies(t *testing.T) {
	b := newBench(t)
	b.push(t, "label/keel", "v1.0.0", "Keel")
	lock := filepath.Join(t.TempDir(), "xpkg.lock")
	resolve(t, lock, b.pushDependent(t, "label/deck", "v1.0.0", b.registry+"/label/keel >=v1.0.0", "Deck"))
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "label-deck", "label-keel", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	b.must(t, 0, "install", "--lock", lock, "--wait", "1m")
	b.must(t, 0, "sync", "--lock", lock, "--dry-run").prints(t, "Nothing to do.")
	b.patch(t, b.provider(t, "label-keel"), `{"metadata":{"labels":{"xpkg.dev/auto-installed":null}}}`)
	e := b.must(t, 2, "sync", "--lock", lock, "--dry-run")
	if want := "note: provider/label-keel will be labelled as a dependency"; !strings.Contains(e.errors, want) ||
		graph.IsAutoInstalled(b.provider(t, "label-keel")) {
		t.Errorf("%s\nwant %q, and no label", e.errors, want)
	}
	b.must(t, 0, "sync", "--lock", lock)
	if !graph.IsAutoInstalled(b.provider(t, "label-keel")) {
		t.Error("the dependency has no label")
	}
}

// TestAtomicNeedsTransactions proves that a command with --atomic writes nothing if the user may not create
// transactions, or if the cluster does not have them.
func TestAtomicNeedsTransactions(t *testing.T) {
	b := newBench(t)
	ref := b.push(t, "forbidden/oar", "v1.0.0", "Oar")
	for name, tc := range map[string]struct {
		status int
		reason metav1.StatusReason
		code   int
		prints string
	}{
		"forbidden":  {http.StatusForbidden, metav1.StatusReasonForbidden, 6, "Or repeat the command without --atomic"},
		"not served": {http.StatusNotFound, metav1.StatusReasonNotFound, 13, "NoTransactions: "},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig := b.intercepted(t, func(w http.ResponseWriter, r *http.Request) bool {
				isDenied := strings.HasSuffix(r.URL.Path, "/transactions")
				if isDenied {
					refuse(w, tc.status, tc.reason)
				}
				return isDenied
			})
			e := b.run(t, kubeconfig, "install", "provider", ref, "oar", "--atomic", "--wait", "1m")
			if e.code != tc.code || !strings.Contains(e.errors, tc.prints) {
				t.Errorf("exit code %d\n%s", e.code, e.errors)
			}
			b.absent(t, "oar")
		})
	}
}

// TestChangesOfSeveralPackagesAreTransactions proves that the manager completes a change of several packages whose
// command is stopped after its first write. A user who may create no transaction, and a cluster without them, get the
// same result from the command.
func TestChangesOfSeveralPackagesAreTransactions(t *testing.T) {
	b := newBench(t)
	var names []string
	lock := filepath.Join(t.TempDir(), "xpkg.lock")
	var refs []string
	for _, name := range []string{"ketch", "sloop", "yacht"} {
		names = append(names, "whole-"+name)
		if name == "yacht" { // Its dependency is no root of the lock file.
			refs = append(refs[1:], b.pushDependent(t, "whole/yacht", "v1.0.0", b.registry+"/whole/ketch >=v1.0.0", "Yacht"))
			continue
		}
		refs = append(refs, b.push(t, "whole/"+name, "v1.0.0", strings.ToUpper(name[:1])+name[1:]))
	}
	resolve(t, lock, refs...)
	remove := append([]string{"uninstall", "--yes", "--on-delete", "cascade=100", "--wait", "1m"}, names...)
	t.Cleanup(func() { b.run(t, b.kubeconfig, remove...) })

	ctx, stop := context.WithCancel(t.Context())
	var writes atomic.Int32
	e := b.runUntil(ctx, b.intercepted(t, func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/transactions/"):
			stop()
		case r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/providers"):
			writes.Add(1)
		}
		return false
	}), "sync", "--lock", lock)
	if e.code == 0 || writes.Load() > 0 {
		t.Errorf("exit code %d, %d writes of packages by the command\n%s", e.code, writes.Load(), e.errors)
	}
	b.must(t, 0, "sync", "--lock", lock, "--wait", "1m")
	b.must(t, 0, remove...)

	// A GitOps tool makes the same change with the transaction that plan prints.
	printed := b.must(t, 0, "plan", "sync", "--lock", lock, "--transaction")
	x := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(printed.out), x); err != nil {
		t.Fatal(err)
	}
	generations := map[string]int64{}
	for range 2 { // Applying it again changes nothing.
		if err := b.client.Apply(
			t.Context(), client.ApplyConfigurationFromUnstructured(x.DeepCopy()), client.FieldOwner("flux"),
		); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, time.Minute, "the transaction has succeeded", func() (string, bool) {
			got := &v1alpha1.Transaction{}
			err := b.client.Get(t.Context(), client.ObjectKey{Name: x.GetName()}, got)
			return fmt.Sprintf("%v %+v", err, got.Status), got.Status.Phase == v1alpha1.Succeeded
		})
		for _, name := range names {
			p := b.provider(t, name)
			if was, ok := generations[name]; ok && was != p.Generation {
				t.Errorf("%s has the generation %d, and had %d", name, p.Generation, was)
			}
			generations[name] = p.Generation
		}
	}
	if again := b.must(t, 0, "plan", "sync", "--lock", lock, "--transaction"); again.out != printed.out {
		t.Errorf("the transaction depends on the installed packages:\n%s\n%s", printed.out, again.out)
	}
	b.must(t, 0, "sync", "--lock", lock, "--dry-run").prints(t, "Nothing to do.")
	b.must(t, 0, remove...)

	for name, tc := range map[string]struct {
		status int
		reason metav1.StatusReason
		notes  bool
	}{
		"forbidden":  {http.StatusForbidden, metav1.StatusReasonForbidden, true},
		"not served": {http.StatusNotFound, metav1.StatusReasonNotFound, false},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig := b.intercepted(t, func(w http.ResponseWriter, r *http.Request) bool {
				isHidden := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/transactions")
				if isHidden {
					refuse(w, tc.status, tc.reason)
				}
				return isHidden
			})
			e := b.run(t, kubeconfig, "sync", "--lock", lock, "--wait", "1m")
			if e.code != 0 || strings.Contains(e.errors, "writes the packages itself") != tc.notes {
				t.Errorf("exit code %d\n%s", e.code, e.errors)
			}
			for _, name := range names {
				b.provider(t, name)
			}
			b.run(t, kubeconfig, remove...)
			for _, name := range names {
				b.absent(t, name)
			}
		})
	}
}

// TestUnknownPackagesEndTheCommand proves that a command of several packages that does not find one of them plans and
// prints nothing.
func TestUnknownPackagesEndTheCommand(t *testing.T) {
	b := newBench(t)
	for _, flag := range []string{"--yes", "--dry-run"} {
		if e := b.must(t, 5, "uninstall", "unknown-a", "unknown-b", flag, "-o", "json"); e.out != "" {
			t.Errorf("%s prints %s", flag, e.out)
		}
	}
}

// TestLostResponsesOfTransactions proves that a command follows a transaction that it has created although the
// connection ended before the response.
func TestLostResponsesOfTransactions(t *testing.T) {
	b := newBench(t)
	dory := b.push(t, "lost/dory", "v1.0.0", "Dory")
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "dory", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	proxy := b.forward(t)
	var once sync.Once
	kubeconfig := b.intercepted(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/transactions") {
			once.Do(func() {
				proxy.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler) // The server closes the connection without a response.
			})
		}
		return false
	})
	if e := b.run(t, kubeconfig, "install", "provider", dory, "dory", "--wait", "1m", "--atomic"); e.code != 0 {
		t.Errorf("exit code %d\n%s", e.code, e.errors)
	}
}

// TestStoppedCommandsFollowTheirTransaction proves that a transaction continues without its command, and that the same
// command waits for it instead of making another one.
func TestStoppedCommandsFollowTheirTransaction(t *testing.T) {
	b := newBench(t)
	first, second := b.push(t, "stopped/gig", "v1.0.0", "Gig"), b.push(t, "stopped/gig", "v2.0.0", "Gig")
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "gig", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	b.must(t, 0, "install", "provider", first, "gig", "--wait", "1m")
	args := []string{"update", "gig", second, "--atomic", "--yes", "--wait", "1m"}
	ctx, stop := context.WithCancel(t.Context())
	kubeconfig := b.intercepted(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/transactions/") {
			stop()
		}
		return false
	})
	e := b.runUntil(ctx, kubeconfig, args...)
	if !strings.Contains(e.errors, "Run the same command again to wait for it") {
		t.Errorf("exit code %d\n%s", e.code, e.errors)
	}
	b.must(t, 0, args...).prints(t, "provider/gig ")
	if p := b.provider(t, "gig"); p.Spec.Package != second {
		t.Errorf("got %s, want %s", p.Spec.Package, second)
	}
	var all v1alpha1.TransactionList
	if err := b.client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, x := range all.Items {
		if len(x.Spec.Packages) > 0 && x.Spec.Packages[0].Name == "gig" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d transactions", n)
	}
}

// TestLockFilesAreStaleIfPackagesMove proves that a command stops if another client changes a package that the command
// leaves unchanged, or installs one that the command installs, while it plans its changes.
func TestLockFilesAreStaleIfPackagesMove(t *testing.T) {
	b := newBench(t)
	oar, oar2 := b.push(t, "moves/oar", "v1.0.0", "Oar"), b.push(t, "moves/oar", "v2.0.0", "Oar")
	cleat, cleat2 := b.push(t, "moves/cleat", "v1.0.0", "Cleat"), b.push(t, "moves/cleat", "v2.0.0", "Cleat")
	t.Cleanup(func() {
		b.run(t, b.kubeconfig, "uninstall", "moves-oar", "moves-cleat", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
	})
	lock := filepath.Join(t.TempDir(), "xpkg.lock")
	resolve(t, lock, oar, cleat)
	b.must(t, 0, "install", "provider", oar, "moves-oar", "--wait", "1m")
	sync := func(change func()) {
		t.Helper()
		e := b.run(t, b.before(t, http.MethodGet, "/providers", 2, change), "sync", "--lock", lock, "--yes")
		if e.code != 9 || !strings.Contains(e.errors, "PlanMoved: ") {
			t.Errorf("exit code %d\n%s%s", e.code, e.out, e.errors)
		}
	}
	sync(func() { b.must(t, 0, "update", oar2, "--yes") })
	b.absent(t, "moves-cleat")
	sync(func() { b.must(t, 0, "install", "provider", cleat2, "moves-cleat") })
	if got := b.provider(t, "moves-cleat").Spec.Package; got != cleat2 {
		t.Errorf("got %s, want %s", got, cleat2)
	}
}

// TestWaitsTolerateOutages proves that a command does not fail, and undo its changes, because the API server does not
// carry out single requests while it waits.
func TestWaitsTolerateOutages(t *testing.T) {
	b := newBench(t)
	scow := b.push(t, "outage/scow", "v1.0.0", "Scow")
	t.Cleanup(func() { b.run(t, b.kubeconfig, "uninstall", "scow", "--yes", "--wait", "1m") })
	var count atomic.Int32
	kubeconfig := b.intercepted(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/providers/scow") {
			switch n := count.Add(1); n {
			case 1, 2, 3:
				http.Error(
					w, "overloaded",
					[]int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}[n-1],
				)
				return true
			case 4:
				panic(http.ErrAbortHandler) // The server closes the connection without a response.
			}
		}
		return false
	})
	for _, args := range [][]string{{"install", "provider", scow, "scow", "--wait", "1m", "--atomic"}, {
		"uninstall", "scow", "--yes", "--wait", "1m",
	}} {
		count.Store(0)
		if args[0] == "uninstall" {
			count.Store(-1) // The command reads the package first.
		}
		if e := b.run(t, kubeconfig, args...); e.code != 0 || count.Load() < 4 {
			t.Errorf("%q: exit code %d after %d reads\n%s", args, e.code, count.Load(), e.errors)
		}
	}
}

// resolve writes the lock file of packages.
func resolve(t *testing.T, lock string, packages ...string) {
	t.Helper()
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: t.Output()}
	if code := cli.Main(t.Context(), append([]string{"xpkg", "resolve", "--lock", lock}, packages...), env); code != 0 {
		t.Fatalf("exit code %d", code)
	}
}
