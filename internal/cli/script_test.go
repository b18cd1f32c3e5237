package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/placeholder"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
)

// TestMain runs the tests or, started by a script under the name of a command,
// that command.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"xpkg":                        command,
		"kubectl-crossplane":          command,
		"kubectl_complete-crossplane": command,
		"kubectl":                     kubectl,
	})
}

// hintsVariable is the environment variable with the file in which command reports hints that a user cannot paste.
const hintsVariable = "XPKG_TEST_HINTS"

// repeatOnTerminals repeats a command on terminals, and returns what is wrong. It is nil where tests have no terminals.
var repeatOnTerminals func(args []string) []string

// command runs the program of this test. It reports a message with a placeholder in a command, or with another name of
// the program than the one that the user typed.
func command() {
	env, messages := cli.System(), &bytes.Buffer{}
	env.Stderr = io.MultiWriter(env.Stderr, messages)
	code := cli.Main(context.Background(), os.Args, env)
	problems := placeholder.Find(messages.String())
	if filepath.Base(os.Args[0]) != "xpkg" && strings.Contains(messages.String(), "`xpkg ") {
		problems = append(problems, "`xpkg ")
	}
	if repeatOnTerminals != nil {
		problems = append(problems, repeatOnTerminals(os.Args)...)
	}
	if problems != nil {
		report := fmt.Sprintf("%q contain %q: %s", os.Args, problems, messages)
		if err := os.WriteFile(os.Getenv(hintsVariable), []byte(report), 0o600); err != nil {
			panic(report)
		}
	}
	os.Exit(code)
}

// kubectl is as much of kubectl as runs a plug-in: "kubectl NAME" is the program
// kubectl-NAME.
func kubectl() {
	program, err := exec.LookPath("kubectl-" + os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	args := append([]string{program}, os.Args[2:]...)
	fmt.Fprintln(os.Stderr, syscall.Exec(program, args, os.Environ()))
	os.Exit(1)
}

// TestScripts runs command lines. Each script has its own home folder, a registry at $REGISTRY
// and a stand-in for Docker Hub.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			return setUp(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"digest": digest,
			"tamper": tamper,
			"expand": expand,
			"forget": closeRegistry,

			"functions":   serveFunction,
			"runtime":     makeRuntime,
			"pushruntime": pushRuntime,
			"daemon":      startDaemon,
			"require":     require,
			"usego":       useGo,
		},
		RequireUniqueNames: true,
	})
}

func setUp(env *testscript.Env) error {
	tb, ok := env.T().(testing.TB)
	if !ok {
		return fmt.Errorf("%T is no testing.TB", env.T())
	}
	env.Values[testKey{}] = tb
	hints := filepath.Join(tb.TempDir(), "hints")
	env.Setenv(hintsVariable, hints)
	env.Defer(func() {
		if report, err := os.ReadFile(hints); !os.IsNotExist(err) {
			tb.Errorf("the messages of %s (%v)", report, err)
		}
	})
	// The options of the race detector, if the commands are built with it.
	env.Setenv("GORACE", os.Getenv("GORACE"))
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
	doors := &doors{}
	env.Values[doorsKey{}] = doors
	env.Setenv("REGISTRY", doors.registry(tb))
	env.Setenv("OTHER", doors.registry(tb))
	// No process listens on this port, which requires root.
	env.Setenv("NOBODY", "127.0.0.1:1")
	h := newHub(tb, home)
	env.Setenv("HTTPS_PROXY", h.proxy)
	env.Setenv("CA", h.ca)
	env.Setenv("PRIVATE", private(tb))
	env.Setenv("TLS_REGISTRY", h.address)
	_, port, err := net.SplitHostPort(h.address)
	if err != nil {
		return err
	}
	env.Setenv("TLS_PORT", port)
	config := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(config, []byte(newAPIServer(tb)), 0o600); err != nil {
		return err
	}
	env.Setenv("KUBECONFIG", config)
	env.Setenv("DOCKER_HOST", "unix://"+filepath.Join(home, "docker.sock"))
	return nil
}

// require ends a script whose prerequisite is missing, as prerequisite.Missing does: "require devices"
// needs a file system and a user that can create devices.
func require(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "devices" {
		ts.Fatalf("usage: require devices")
	}
	path := ts.MkAbs("device")
	err := exec.Command("mknod", path, "c", "1", "3").Run()
	if err == nil {
		// The file system may be mounted without devices.
		err = os.WriteFile(path, nil, 0)
	}
	if err != nil {
		prerequisite.Missing(scriptTest(ts), "devices cannot be created in %s: %v", ts.Getenv("WORK"), err)
	}
	ts.Check(os.Remove(path))
}

// useGo gives a script the caches of the Go toolchain.
func useGo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: usego")
	}
	for _, variable := range program.GoFolders(scriptTest(ts)) {
		name, value, _ := strings.Cut(variable, "=")
		ts.Setenv(name, value)
	}
}

// testKey is the key of the test of a script.
type testKey struct{}

// scriptTest returns the test that a script is.
func scriptTest(ts *testscript.TestScript) testing.TB { return ts.Value(testKey{}).(testing.TB) }

// private returns a registry that accepts alice with the password "secret".
func private(tb testing.TB) string {
	target, err := url.Parse("http://" + cluster.Registry(tb))
	if err != nil {
		tb.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "alice" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	tb.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// digest sets a variable to the digest in the standard output of the last command:
// "digest NAME".
func digest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: digest NAME")
	}
	out := ts.ReadFile("stdout")
	i := strings.LastIndex(out, "sha256:")
	if i < 0 || len(out) < i+71 {
		ts.Fatalf("there is no digest in the output: %s", out)
	}
	ts.Setenv(args[0], out[i:i+71])
}

// tamper changes a byte in the middle of a file: "tamper FILE".
func tamper(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tamper FILE")
	}
	name := ts.MkAbs(args[0])
	raw, err := os.ReadFile(name)
	ts.Check(err)
	raw[len(raw)/2] ^= 1
	ts.Check(os.WriteFile(name, raw, 0o600))
}

// expand replaces the variables in a file by their values: "expand FILE".
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expand FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(os.Expand(ts.ReadFile(args[0]), ts.Getenv)), 0o600))
}

// doors are registries that can be closed.
type doors struct{ servers []*httptest.Server }

type doorsKey struct{}

// registry opens one.
func (d *doors) registry(tb testing.TB) string {
	target, err := url.Parse("http://" + cluster.Registry(tb))
	if err != nil {
		tb.Fatal(err)
	}
	server := port.Serve(tb, httputil.NewSingleHostReverseProxy(target))
	d.servers = append(d.servers, server)
	return strings.TrimPrefix(server.URL, "http://")
}

// closeRegistry takes a registry off the network: "forget HOST".
func closeRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: forget HOST")
	}
	for _, s := range ts.Value(doorsKey{}).(*doors).servers {
		if s.URL == "http://"+args[0] {
			s.Close()
			return
		}
	}
	ts.Fatalf("there is no registry %s", args[0])
}
