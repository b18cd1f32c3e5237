package cli_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
)

// says fails unless a text matches.
func says(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile("(?m)" + pattern).MatchString(text) {
		t.Errorf("it does not say %s:\n%s", pattern, text)
	}
}

// Where a person activates revisions, nobody says that the new version is healthy while
// the old one runs.
func TestWaitForAPerson(t *testing.T) {
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "ferries", "v1", "Ferry"), "ferries", "--wait", "1m")
	b.push(t, "ferries", "v2", "Ferry", "Pier")
	got := b.must(t, 0, "update", "ferries", "v2", "--manual-activation", "--yes", "--wait", "1m")
	says(t, got.out, `^provider/ferries waits to be activated \(.*/ferries:v2\)$`)
	says(t, got.errors, `^note: Revision ferries-[0-9a-f]{12} waits to be activated`)
	says(t, b.must(t, 0, "tree", "ferries").out, `^provider/ferries  v1  Healthy=True  Revision ferries-[0-9a-f]{12} waits to be activated.*\n└─ 1 CustomResourceDefinition$`)

	got = b.must(t, 0, "update", "ferries", "--no-manual-activation", "--yes", "--wait", "1m")
	says(t, got.out, `^provider/ferries healthy `)
	says(t, b.must(t, 0, "tree", "ferries").out, `^provider/ferries  v2  Healthy=True\n└─ 2 CustomResourceDefinitions$`)
	b.must(t, 0, "uninstall", "provider", "ferries", "--yes", "--wait", "1m")
}

// A package that is left alone on purpose says so, and not that nobody looks at it.
func TestWaitForAPausedPackage(t *testing.T) {
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "paused", "v1", "Ferry"), "paused", "--wait", "1m")
	b.push(t, "paused", "v2", "Ferry")
	b.patch(t, b.provider(t, "paused"), `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`)
	got := b.must(t, 11, "update", "paused", "v2", "--yes", "--wait", "3s")
	says(t, got.errors, `^error: NotHealthyInTime: provider/paused is not healthy: Reconciliation is paused by the annotation crossplane.io/paused$`)
	b.patch(t, b.provider(t, "paused"), `{"metadata":{"annotations":{"crossplane.io/paused":null}}}`)
	b.must(t, 0, "update", "paused", "v2", "--yes", "--wait", "1m")
	b.must(t, 0, "uninstall", "provider", "paused", "--yes", "--wait", "1m")
}

// A version that was given up is not waited for any longer.
func TestWaitForWhatIsRolledBack(t *testing.T) {
	b := benchWith(t, func(o *controller.Options, _ *fetch.Source) { o.ActivationDeadline = 2 * time.Second })
	first := b.push(t, "needy", "v1", "Ferry")
	b.must(t, 0, "install", "provider", first, "needy", "--wait", "1m")
	// The command would foresee that v2 has no solution. Whoever changes the object does not.
	second := b.pushNeedy(t, "needy", "v2", b.registry+"/nowhere", "Ferry")
	b.patch(t, b.provider(t, "needy"), `{"spec":{"package":"`+second+`"}}`)
	got := b.must(t, 12, "install", "provider", second, "needy", "--wait", "1m")
	says(t, got.errors, `^error: RolledBack: provider/needy does not run the requested version: rolled back to needy-[0-9a-f]{12}: needy-[0-9a-f]{12} did not become healthy and stay so within 2s: DependencyMissing: `)
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if code := cli.Main(t.Context(), []string{"xpkg", "list", "--kubeconfig", b.kubeconfig}, env); code != 0 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	says(t, out.String(), regexp.QuoteMeta(first)+` \(rolled back: the update to `+regexp.QuoteMeta(second)+` failed\)`)
	says(t, b.must(t, 0, "tree", "needy").out, `^provider/needy  v1  Healthy=False  RolledBack: `)
	b.must(t, 0, "uninstall", "provider", "needy", "--yes", "--wait", "1m")
}

// A failure has one advice, that of the package manager.
func TestWaitForAFailureWithAdvice(t *testing.T) {
	b := newBench(t)
	got := b.must(t, 4, "install", "function", b.push(t, "advice", "v1", "Ferry"), "advice", "--wait", "1m")
	says(t, got.errors, `^error: WrongKind: function/advice cannot be installed: .* is a Provider and not a Function. Install it as a Provider instead, .*\n  The message says what to do. Nothing was installed: function/advice was removed again.$`)
}
