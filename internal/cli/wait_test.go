package cli_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// checkMatches fails unless a text matches.
func checkMatches(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile("(?m)" + pattern).MatchString(text) {
		t.Errorf("it does not say %s:\n%s", pattern, text)
	}
}

// With manual activation, a wait does not report the new version as healthy while the old one
// runs.
func TestWaitForAUser(t *testing.T) {
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "ferries", "v1", "Ferry"), "ferries", "--wait", "1m")
	b.push(t, "ferries", "v2", "Ferry", "Pier")
	got := b.must(t, 0, "update", "ferries", "v2", "--manual-activation", "--yes", "--wait", "1m")
	checkMatches(t, got.out, `^provider/ferries waits to be activated \(.*/ferries:v2\)$`)
	checkMatches(t, got.errors, `^note: Revision ferries-[0-9a-f]{12} waits to be activated`)
	checkMatches(
		t, b.must(t, 0, "tree", "ferries").out,
		`^provider/ferries  v2 \(v1 runs\)  Healthy=True  Revision ferries-[0-9a-f]{12} waits to be activated.*\n└─ 1 CustomResourceDefinition$`,
	)

	got = b.must(t, 0, "update", "ferries", "--no-manual-activation", "--yes", "--wait", "1m")
	checkMatches(t, got.out, `^provider/ferries healthy `)
	checkMatches(
		t, b.must(t, 0, "tree", "ferries").out, `^provider/ferries  v2  Healthy=True\n└─ 2 CustomResourceDefinitions$`,
	)
	b.must(t, 0, "uninstall", "provider", "ferries", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}

// The message about a paused package is that it is paused.
func TestWaitForAPausedPackage(t *testing.T) {
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "paused", "v1", "Ferry"), "paused", "--wait", "1m")
	b.push(t, "paused", "v2", "Ferry")
	b.patch(t, b.provider(t, "paused"), `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`)
	got := b.must(t, 11, "update", "paused", "v2", "--yes", "--wait", "3s")
	checkMatches(
		t, got.errors,
		`^error: NotHealthyInTime: provider/paused is not healthy: Reconciliation is paused by the annotation crossplane.io/paused$`,
	)
	checkMatches(
		t, got.errors,
		"^  The manager changes nothing until you run `kubectl annotate provider.pkg paused crossplane.io/paused-`.$",
	)
	b.patch(t, b.provider(t, "paused"), `{"metadata":{"annotations":{"crossplane.io/paused":null}}}`)
	b.must(t, 0, "update", "paused", "v2", "--yes", "--wait", "1m")
	b.must(t, 0, "uninstall", "provider", "paused", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}

// A version that was given up is not waited for any longer.
func TestWaitForARolledBackPackage(t *testing.T) {
	b := benchWith(t, func(o *controller.Options, _ *fetch.Source) { o.ActivationDeadline = 2 * time.Second })
	first := b.push(t, "dependent", "v1", "Ferry")
	b.must(t, 0, "install", "provider", first, "dependent", "--wait", "1m")
	// The command would refuse v2, which has no solution; a change of the object is not checked.
	second := b.pushDependent(t, "dependent", "v2", b.registry+"/nowhere", "Ferry")
	b.patch(t, b.provider(t, "dependent"), `{"spec":{"package":"`+second+`"}}`)
	got := b.must(t, 12, "install", "provider", second, "dependent", "--wait", "1m")
	checkMatches(
		t, got.errors,
		`^error: RolledBack: provider/dependent does not run the requested version: rolled back to dependent-[0-9a-f]{12}: dependent-[0-9a-f]{12} did not become healthy and stay so within 2s: DependencyMissing: `,
	)
	var out, errs bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if code := cli.Main(t.Context(), []string{"xpkg", "list", "--kubeconfig", b.kubeconfig}, env); code != 0 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	checkMatches(t, out.String(), `provider/dependent +RolledBack +False +v2 \(v1 runs\) `)
	checkMatches(
		t, b.must(t, 0, "tree", "dependent").out, `^provider/dependent  v2 \(v1 runs\)  Healthy=False  RolledBack: `,
	)
	b.must(t, 0, "uninstall", "provider", "dependent", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}

// TestWaitForAFailureWithAdvice proves that a command that waits ends with the failure and the
// fix of the condition.
func TestWaitForAFailureWithAdvice(t *testing.T) {
	b := newBench(t)
	b.push(t, "advice", "v1", "Ferry")
	ref := publish.Stream(t, b.registry, "advice", "v2", []byte(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: f\n",
	)).String()
	b.create(t, "advice", ref)
	got := b.must(t, 4, "install", "provider", ref, "advice", "--wait", "1m")
	checkMatches(
		t, got.errors,
		`^error: WrongKind: provider/advice cannot be installed: .* is a Function and not a Provider\n  Install it as a Function instead, with .xpkg install function [^ ]*/advice:v2.\.`,
	)
	b.must(t, 0, "uninstall", "provider", "advice", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}

// TestInstallWritesNothingThatThePlanRefuses proves that an install without a terminal ends with
// the error of the plan, and creates no package.
func TestInstallWritesNothingThatThePlanRefuses(t *testing.T) {
	b := newBench(t)
	held := b.push(t, "holder", "v1", "Ferry")
	b.must(t, 0, "install", "provider", held, "holder", "--wait", "1m")
	definition := publish.Definition("holder.apply.test", "Ferry", "v1")
	stream := func(kind, extra, objects string) []byte {
		return []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata:\n  name: p\n" + extra + objects)
	}
	b.push(t, "base", "v1.0.0", "Pier")
	needs := "spec:\n  dependsOn:\n  - provider: " + b.registry + "/base\n    version: v9.0.0\n"
	for name, stream := range map[string][]byte{
		"wrongkind":    stream("Function", "", ""),
		"conflict":     stream("Provider", "", definition),
		"incompatible": stream("Provider", "spec:\n  crossplane:\n    version: broken constraint\n", ""),
		"nosolution":   stream("Provider", needs, ""),
		"malformed":    []byte("kind: [\n"),
	} {
		ref := publish.Stream(t, b.registry, name, "v1", stream).String()
		planned := b.run(t, b.kubeconfig, "plan", "install", "provider", ref, name)
		installed := b.run(t, b.kubeconfig, "install", "provider", ref, name, "--wait", "1m")
		yes := b.run(t, b.kubeconfig, "install", "provider", ref, name, "--wait", "1m", "--yes")
		if planned.code <= 2 || installed.code != planned.code || yes.code != planned.code ||
			errorLine(installed) != errorLine(planned) {
			t.Errorf(
				"%s: plan ended with %d, install with %d and %d\n%s\n%s", name, planned.code, installed.code, yes.code,
				planned.errors, installed.errors,
			)
		}
		b.absent(t, name)
	}
	b.must(t, 0, "uninstall", "provider", "holder", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}

// TestFailedInstallLeavesNothing proves that an install which the command cannot plan is planned by the manager, and
// writes no package that can never be installed.
func TestFailedInstallLeavesNothing(t *testing.T) {
	b := newBench(t)
	got := b.must(t, 5, "install", "provider", "nowhere", "--package-pull-policy", "Never", "--wait", "1m")
	checkMatches(t, got.errors, `^the plan cannot be computed here: `)
	b.absent(t, "nowhere")
}

// errorLine returns the line with the error of a command.
func errorLine(e ended) string {
	for line := range strings.Lines(e.errors) {
		if strings.HasPrefix(line, "error: ") {
			return line
		}
	}
	return ""
}

// absent fails if a provider exists.
func (b bench) absent(t *testing.T, name string) {
	t.Helper()
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: name}, &v1.Provider{}); !apierrors.IsNotFound(err) {
		t.Errorf("provider %s exists: %v", name, err)
	}
}

// create creates a provider without a command, as a GitOps tool does.
func (b bench) create(t *testing.T, name, reference string) {
	t.Helper()
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Package = reference
	if err := b.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}
