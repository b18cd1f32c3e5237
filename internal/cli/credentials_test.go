package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	commands "github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// No command prints the credentials in a reference, wherever a user writes it.
func TestOutputContainsNoCredentials(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("XPKG_CACHE_DIR", t.TempDir())
	const at = "user:hunter2@127.0.0.1:1"
	dir := t.TempDir()
	lock, folder := filepath.Join(dir, "xpkg.lock"), filepath.Join(dir, "package")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(lock, "apiVersion: xpkg.dev/v1alpha1\nkind: PackageLock\nroots:\n- package: "+at+
		"/a/b\n  version: v1\npackages: []\n")
	write(
		filepath.Join(folder, "crossplane.yaml"),
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: x}\nspec:\n  dependsOn:\n  - {provider: "+
			at+"/a/b, version: v1}\n",
	)
	for _, line := range []string{
		"pull " + at + "/a/b:v1", "inspect " + at + "/a/b:v1", "extract https://" + at + "/a/b:v1",
		"diff " + at + "/a/b:v1 " + at + "/a/b:v2", "copy " + at + "/a/b:v1 " + at + "/a/c:v1",
		"lint " + at + "/a/b:v1", "convert " + at + "/a/b:v1 -o " + dir + "/out",
		"login " + at + " --username x --password-stdin",
		"index build " + at + "/i:main --repository " + at + "/a/b", "search x --index " + at + "/i:main",
		"search x --index https://" + at + "/i:main",
		"versions " + at + "/a/b", "resolve " + at + "/a/b@>=v1", "resolve " + folder, "bundle load " + lock + " " + at + "/x", "bundle save " + lock + " -o " + dir + "/x.tar",
		"registry serve --dir " + dir + "/registry --backend " + at, "registry yank " + at + "/a/b:v1",
		"registry mirror " + at + "/i:main --to " + at,
		"install " + at + "/a/b:v1", "update " + at + "/a/b:v1", "plan install provider " + at + "/a/b:v1",
		"sync --lock " + lock, "build " + folder + " -o " + dir + "/x.xpkg",
		"push -f " + dir + "/x.xpkg " + at + "/a/b:v1", "lint " + folder,
	} {
		code, stdout, stderr := commands.Output(t, strings.Fields(line)...)
		if strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%s\nexit code %d\n%s%s", line, code, stdout, stderr)
		}
		if strings.Contains(stderr, "unknown flag") || strings.Contains(stderr, "missing flags") ||
			strings.Contains(stderr, "unexpected argument") {
			t.Errorf("%s is not a command of this test: %s", line, stderr)
		}
	}
}

// A command uses the entry of the longest path of the user's configuration, for reads and writes, whatever its order.
func TestCredentialsByPath(t *testing.T) {
	registry := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		team, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/")
		status := http.StatusNotFound
		if user, _, _ := r.BasicAuth(); user != team {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
	})).URL, "http://")
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	config := fmt.Sprintf(`{"auths":{"%[1]s":{"username":"other","password":"x"},"%[1]s/team-a":{"username":"team-a","password":"x"},`+
		`"%[1]s/team-b":{"username":"team-b","password":"x"}}}`, registry)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for team, want := range map[string]string{
		"team-a": "RepositoryNotFound", "team-b": "RepositoryNotFound", "other": "RepositoryNotFound",
		"team-c": "Unauthorized",
	} {
		ref := registry + "/" + team + "/pkg:v1"
		for _, line := range []string{"inspect " + ref, "versions " + registry + "/" + team + "/pkg", "copy " + ref + " " +
			dir + "/x.xpkg"} {
			if _, _, stderr := commands.Output(t, strings.Fields(line)...); !strings.Contains(stderr, "error: "+want+": ") {
				t.Errorf("%s: want %s, got %s", line, want, stderr)
			}
		}
	}
}
