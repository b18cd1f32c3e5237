package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/internal/cli/controlplane"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// packagesServer returns a cluster with a provider, a function of the same name, and a
// configuration.
func packagesServer(t *testing.T) *httptest.Server {
	t.Helper()
	item := func(kind, name, revision string) string {
		return fmt.Sprintf(
			`{"apiVersion":"pkg.crossplane.io/v1","kind":%q,"metadata":{"name":%q},"status":{"currentRevision":%q}}`, kind, name,
			revision,
		)
	}
	back := `{"apiVersion":"pkg.crossplane.io/v1","kind":"Provider","metadata":{"name":"back"},"status":{"currentRevision":"hello-old","activation":{"revision":"hello-0123456789ab","number":3,"since":"2026-01-02T03:04:05Z"}}}` +
		`,{"apiVersion":"pkg.crossplane.io/v1","kind":"Provider","metadata":{"name":"waits"},"status":{"currentRevision":"hello-next","lastHealthyRevision":"hello-0123456789ab"}}` +
		`,{"apiVersion":"pkg.crossplane.io/v1","kind":"Provider","metadata":{"name":"failed"},"status":{"currentRevision":"failed-2","lastHealthyRevision":"hello-0123456789ab","activation":{"revision":"failed-2","number":2,"since":"2026-01-02T03:04:05Z"}}}`
	lists := map[string]string{
		"providers": item("Provider", "hello", "hello-0123456789ab") + "," + item("Provider", "new", "") + "," + back,
		"functions": item("Function", "hello", "hello-ba9876543210") + "," +
			item("Function", "quiet", "quiet-0123456789ab"),
		"configurations": item("Configuration", "platform", "platform-0123456789ab"),
	}
	kinds := map[string]string{
		"providers": "ProviderList", "functions": "FunctionList", "configurations": "ConfigurationList",
	}
	object := func(kind, name, more string) string {
		return fmt.Sprintf(
			`{"apiVersion":"packages.crossplane.io/v1alpha1","kind":%q,"metadata":{"namespace":"team","name":%q},%s}`, kind,
			name, more,
		)
	}
	runs := `"status":{"controllerRef":{"kind":"Deployment","namespace":"team","name":"redis"}}`
	objects := map[string]string{
		"locks/lock":     `{"apiVersion":"pkg.crossplane.io/v1beta1","kind":"Lock","metadata":{"name":"lock","annotations":{"xpkg.dev/package-runtimes":"Provider=Process;Function=Deployment"}}}`,
		"packages/redis": object("Package", "redis", runs),
		"packages/hello": object(
			"Package", "hello", `"status":{"controllerRef":{"kind":"Provider","name":"hello"}}`,
		),
		"packages/data": object("Package", "data", `"spec":{"controller":{}}`),
		"packages/waits": object(
			"Package", "waits",
			`"spec":{"controller":{"deployment":{"name":"waits","spec":{}}}},"status":{"conditionedStatus":{"conditions":[{"type":"Ready","status":"False","message":"no kinds"}]}}`,
		),
		"packageinstalls/mine": object(
			"PackageInstall", "mine", `"status":{"packageRecord":{"namespace":"team","name":"redis"}}`,
		),
		"packageinstalls/new": object("PackageInstall", "new", `"status":{}`),
		"clusterpackageinstalls/hello": object(
			"ClusterPackageInstall", "hello", `"status":{"packageRecord":{"namespace":"team","name":"hello"}}`,
		),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		resource := filepath.Base(r.URL.Path)
		if o, ok := objects[filepath.Base(filepath.Dir(r.URL.Path))+"/"+resource]; ok {
			fmt.Fprint(w, o)
			return
		}
		items, ok := lists[resource]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(
				w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"name":"lock"},"code":404}`,
			)
			return
		}
		fmt.Fprintf(w, `{"apiVersion":"pkg.crossplane.io/v1","kind":%q,"items":[%s]}`, kinds[resource], items)
	}))
	t.Cleanup(server.Close)
	return server
}

// planeOf makes a data directory as a control plane that runs has it.
func planeOf(t *testing.T, server string) string {
	t.Helper()
	dir := t.TempDir()
	state, err := json.Marshal(map[string]any{
		"dataDir": dir, "server": server, "kubeconfig": filepath.Join(dir, "kubeconfig"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"version.json":                        `{"kind":"xpkg control plane","layout":1,"created":"2026-01-02T03:04:05Z"}`,
		"state.json":                          string(state),
		"runtime/logs/hello-0123456789ab.log": "one\ntwo\tcolumns\n", "runtime/logs/hello-old.log": "old\n",
		"runtime/logs/" + runtime.ProcessName(plan.Owner{Namespace: "team", Name: "redis"}) + ".log": "of redis\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock := flock.New(filepath.Join(dir, "up.lock"), flock.SetPermissions(0o600))
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	return dir
}

func TestLogs(t *testing.T) {
	server := packagesServer(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: " + server.URL +
		"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	here, other := planeOf(t, server.URL), planeOf(t, "https://127.0.0.1:1")
	tests := map[string]struct {
		dir, args string
		exit      int
		out       string
		says      []string
	}{
		"package":          {here, "provider/hello", 0, "one\ntwo\tcolumns\n", nil},
		"tail":             {here, "provider/hello --tail 1", 0, "two\tcolumns\n", nil},
		"revision":         {other, "hello-0123456789ab", 0, "one\ntwo\tcolumns\n", nil},
		"former revision":  {here, "hello-old", 0, "old\n", nil},
		"two of the name":  {here, "hello", 3, "", []string{"AmbiguousName"}},
		"unknown":          {here, "absent", 5, "", []string{"PackageNotFound"}},
		"brought back":     {here, "back --tail 1", 0, "two\tcolumns\n", nil},
		"waits for rights": {here, "waits --tail 1", 0, "two\tcolumns\n", nil},
		"not started yet": {here, "failed --tail 1", 0, "two\tcolumns\n", []string{
			"note: failed-2 has no log; this is the log of hello-0123456789ab, the last healthy revision",
		}},
		"never started":   {here, "quiet", 5, "", []string{"NoLogs", "quiet has no log"}},
		"no revision":     {here, "new", 5, "", []string{"NoLogs", "no revision yet"}},
		"no program":      {here, "platform", 5, "", []string{"NoLogs", "Configuration"}},
		"Package":         {here, "package/team/redis", 0, "of redis\n", nil},
		"PackageInstall":  {here, "packageinstall/team/mine", 0, "of redis\n", nil},
		"cluster install": {here, "clusterpackageinstall/team/hello --tail 1", 0, "two\tcolumns\n", nil},
		"record":          {here, "package/team/hello --tail 1", 0, "two\tcolumns\n", nil},
		"only data":       {here, "package/team/data", 5, "", []string{"NoLogs", "package/team/data has no controller"}},
		"without kinds":   {here, "package/team/waits", 5, "", []string{"NoLogs", "runs no controller yet", "no kinds"}},
		"no record":       {here, "packageinstall/team/new", 5, "", []string{"NoLogs", "runs no controller yet"}},
		"absent Package": {here, "package/team/absent", 5, "", []string{
			"PackageNotFound", "package/team/absent does not exist",
		}},
		"Package of a cluster": {other, "packageinstall/team/mine", 13, "", []string{
			"LogsElsewhere", "kubectl logs deployment/redis --namespace team --container package-runtime",
		}},
		"of a cluster": {other, "quiet -f --tail 5", 13, "", []string{
			"LogsElsewhere",
			"kubectl logs deployment/quiet-0123456789ab --namespace crossplane-system --container package-runtime --kubeconfig " +
				kubeconfig + " --follow --tail=5",
		}},
		"process elsewhere": {other, "back", 13, "", []string{
			"LogsElsewhere", "a control plane whose data is not in " + other, "--data-dir",
		}},
		"without the name": {here, "", 3, "", []string{"Usage"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, said bytes.Buffer
			argv := append(
				[]string{"xpkg", "logs", "--kubeconfig", kubeconfig, "--data-dir", test.dir}, strings.Fields(test.args)...,
			)
			exit := Main(t.Context(), argv, &terminal.Env{Stdout: &out, Stderr: &said})
			if exit != test.exit || out.String() != test.out {
				t.Errorf("exit %d, printed %q, said %s", exit, out.String(), said.String())
			}
			for _, word := range test.says {
				if !strings.Contains(said.String(), word) {
					t.Errorf("%q is not in: %s", word, said.String())
				}
			}
		})
	}
}

// The directory of a kubeconfig is the data directory of its control plane.
func TestLogsOfTheControlPlaneOfAKubeconfig(t *testing.T) {
	server := packagesServer(t)
	dir := planeOf(t, server.URL)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	kubeconfig, link := filepath.Join(dir, "kubeconfig"), filepath.Join(t.TempDir(), "kubeconfig")
	config := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: " + server.URL +
		"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := errors.Join(os.WriteFile(kubeconfig, []byte(config), 0o600), os.Symlink(kubeconfig, link)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		variable, dataDir, argument string
		exit                        int
	}{
		"KUBECONFIG":                  {kubeconfig, "", "", 0},
		"link in KUBECONFIG":          {link, "", "", 0},
		"flag":                        {"", "", "--kubeconfig=" + link, 0},
		"XPKG_DATA_DIR":               {"", dir, "", 0},
		"flag of the data directory":  {"", "", "--data-dir=" + dir, 0},
		"another data directory":      {kubeconfig, t.TempDir(), "", 13},
		"control plane that is ended": {"", t.TempDir(), "", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.variable)
			t.Setenv("XPKG_DATA_DIR", test.dataDir)
			var out, said bytes.Buffer
			argv := slices.DeleteFunc(
				[]string{"xpkg", "logs", "provider/hello", test.argument}, func(a string) bool { return a == "" },
			)
			exit := Main(t.Context(), argv, &terminal.Env{Stdout: &out, Stderr: &said})
			if exit != test.exit || exit == 0 && out.String() != "one\ntwo\tcolumns\n" {
				t.Errorf("exit %d, printed %q, said %s", exit, out.String(), said.String())
			}
		})
	}
}

// hardening: E4
func TestLogsOnATerminalAreHarmless(t *testing.T) {
	var out bytes.Buffer
	if err := controlplane.CopyText(&out, strings.NewReader("a\tb\n\x1b[2Jc\nd")); err != nil {
		t.Fatal(err)
	}
	if want := "a\tb\n\\u001b[2Jc\nd"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// The help does not contain the hidden command.
func TestRuntimeInitIsHidden(t *testing.T) {
	var out, said bytes.Buffer
	if exit := Main(t.Context(), []string{"xpkg", "--help"}, &terminal.Env{Stdout: &out, Stderr: &said}); exit != 0 ||
		strings.Contains(out.String(), "runtime-init") {
		t.Errorf("exit %d, %s", exit, out.String())
	}
}
