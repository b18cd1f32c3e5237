//go:build unix

package program_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A command whose connection breaks prints its own error only, and no log lines of the libraries that it uses.
func TestBrokenConnectionPrintsNoLogLines(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("{"))
	}))
	t.Cleanup(server.Close)
	w := newWorkshop(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: '"+
		server.URL+"'}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(w.program(), "list", "--kubeconfig", kubeconfig)
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the command succeeds:\n%s", out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "request.go") || strings.Contains(line, "Unexpected error when reading") {
			t.Errorf("log line: %s", line)
		}
	}
	if !strings.Contains(string(out), "error: ") {
		t.Errorf("the command reports no error:\n%s", out)
	}
}
