package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// The same folder has the same digest on every machine, so the digests in the guide are the
// digests of the example.
func TestGuideShowsWhatTheExampleGives(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/build-and-publish.md")
	if err != nil {
		t.Fatal(err)
	}
	contains := func(line string) {
		if !strings.Contains(string(guide), line) {
			t.Errorf("the guide does not say %q", line)
		}
	}
	file := filepath.Join(t.TempDir(), "provider-hello.xpkg")
	build := []string{"build", "-f", "../../examples/provider-hello/package", "-o", file}
	_, digest, _ := strings.Cut(printed(t, append(build, "--platform", "linux/arm64")...), "objects, ")
	contains("linux/arm64       " + strings.TrimSpace(digest))
	contains(strings.TrimPrefix(printed(t, build...), filepath.Dir(file)+"/"))
	for line := range strings.Lines(printed(t, "inspect", "--cache-dir", t.TempDir(), file)) {
		if strings.Contains(line, " sha256:") && !strings.HasPrefix(line, "source") {
			contains(line)
		}
	}
}

// printed runs a command and returns its standard output.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(t.Context(), append([]string{"xpkg"}, args...), &terminal.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}); code != 0 {
		t.Fatalf("xpkg %s: exit code %d\n%s", strings.Join(args, " "), code, &errs)
	}
	return out.String()
}
