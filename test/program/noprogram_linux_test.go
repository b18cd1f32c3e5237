package program_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/up"
)

// TestInstallPredictsAPackageWithoutAProgram proves that the documented path of build, push and install ends
// before the first write on a control plane with process runtimes, if the package contains no program: in a plan
// and in an install, also as the first command on a control plane.
func TestInstallPredictsAPackageWithoutAProgram(t *testing.T) {
	w := newWorkshop(t)
	dir := w.newData(t, "noprogram")
	args := append(upArgs(dir)[:len(upArgs(dir))-2], "--detach")
	if r := w.run(t.Context(), "", args...); r.err != nil {
		t.Fatalf("xpkg up: %v\n%s", r.err, r.stderr)
	}
	t.Cleanup(func() { w.run(context.Background(), "", "down", "--data-dir", dir) })
	report, err := up.Status(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := plane{w, report.State}
	ref := p.publish(t, filepath.Join("..", "..", "examples", "provider-hello", "package"), "examples/provider-hello")
	for _, args := range [][]string{
		{"plan", "install", "provider", ref, "hello"}, {"install", "provider", ref, "hello", "--wait", "1m"},
		{"install", "provider", ref, "hello"}, {"install", "provider", ref, "hello", "--dry-run"},
	} {
		r := p.run(t.Context(), p.Kubeconfig, args...)
		for _, want := range []string{"error: NoProgram: ", "has neither an entrypoint nor a command", "Rebuild the package with --embed-runtime-image"} {
			if r.code != 4 || !strings.Contains(r.stderr, want) {
				t.Errorf("xpkg %s: exit code %d, want %q\n%s", strings.Join(args, " "), r.code, want, r.stderr)
			}
		}
		if p.installed(t, "hello") {
			t.Errorf("xpkg %s installed the package", strings.Join(args, " "))
		}
	}
	plan := p.run(t.Context(), p.Kubeconfig, "plan", "install", "provider", ref, "hello")
	if !strings.Contains(plan.stdout, "The runtime is refused; nothing will be changed.") {
		t.Errorf("the plan has no summary of the refusal:\n%s", plan.stdout)
	}
	plan = p.run(t.Context(), p.Kubeconfig, "plan", "install", "provider", ref, "hello", "-o", "json")
	if !strings.Contains(plan.stdout, `"code": "NoProgram"`) {
		t.Errorf("the JSON has no code:\n%s", plan.stdout)
	}
}
