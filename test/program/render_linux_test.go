package program_test

import (
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
)

// TestRenderRunsTheFunctionsOfALockFileWithoutARegistry renders a composite resource of the example with the function
// of the example, first with a registry and then without.
func TestRenderRunsTheFunctionsOfALockFileWithoutARegistry(t *testing.T) {
	w := newWorkshop(t)
	executable, err := scratch.Compile("../../examples/function-greet/cmd/function-greet")
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse("http://" + cluster.Registry(t))
	if err != nil {
		t.Fatal(err)
	}
	registry := port.Serve(t, httputil.NewSingleHostReverseProxy(target))
	host := strings.TrimPrefix(registry.URL, "http://")
	for _, kind := range []string{"Function", "Provider"} {
		name := map[string]string{"Function": "function-greet", "Provider": "provider-hello"}[kind]
		publish.Program(
			t, host, "examples/"+name, "v0.1.0",
			[]byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: "+kind+"\nmetadata: {name: "+name+"}\n"), executable,
		)
	}
	work := t.TempDir()
	if err := copyExamples(work, host); err != nil {
		t.Fatal(err)
	}
	xr := "apiVersion: hello.xpkg.dev/v1alpha1\nkind: XWelcome\nmetadata: {name: visitors}\nspec: {guest: world}\n"
	if err := os.WriteFile(filepath.Join(work, "xr.yaml"), []byte(xr), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(w.program(), args...)
		cmd.Dir = filepath.Join(work, "configuration-hello")
		cmd.Env = append(w.env, "XPKG_CACHE_DIR="+filepath.Join(work, "cache"))
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("xpkg %v: %v\n%s", args, err, &stderr)
		}
		return stdout.String()
	}
	first := run("render", "../xr.yaml", "--timeout", "5m")
	if !strings.Contains(first, "kind: Greeting\n") || !strings.Contains(first, "  language: en\n  name: world\n") {
		t.Errorf("got\n%s", first)
	}
	run("resolve", "--lock", "xpkg.lock")
	registry.Close()
	if again := run("render", "../xr.yaml", "--lock", "xpkg.lock", "--timeout", "5m"); again != first {
		t.Errorf("got\n%s, want\n%s", again, first)
	}
}
