package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
)

// TestMain makes the test binary act as init, or as a supervisor that a test can kill.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case InitCommand:
			if err := Init(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case superviseCommand:
			supervise()
		case forbidMemoryCommand:
			fmt.Fprintln(os.Stderr, forbidMemory())
			os.Exit(1)
		}
	}
	if os.Getenv(forbiddenVariable) != "" {
		// The limit holds for this user namespace, which was created for the test.
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	// The test images have the modes of unpacked images, regardless of the umask.
	unix.Umask(0o022)
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

const patience = 30 * time.Second

// programVariable is the path of the test program if it was already built.
const programVariable = "XPKG_TEST_PROGRAM"

// builtIn is the folder that it was built in, if it was.
var builtIn string

// built builds the test program once.
var built = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(programVariable); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "program")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "program")
	// The program can also be the loader of another program, at whose usual address it must
	// not be.
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-T=0x30001000", "-o", path, "./testdata/program")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func buildProgram(t testing.TB) []byte {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// folders are images that are folders.
type folders map[oci.Digest]Root

func (f folders) Image(_ context.Context, _ fetch.Origin, d oci.Digest) (Root, error) {
	root, ok := f[d]
	if !ok {
		return Root{}, errors.New("there is no such image")
	}
	return root, nil
}

// imageDigest is the digest of the image that most tests use.
var imageDigest = oci.DigestOf([]byte("image"))

// image returns a folder with the test program as /bin/program, like an unpacked image.
// The folder also contains files at the paths of given files.
func image(t testing.TB) folders {
	t.Helper()
	root := filepath.Join(openTemp(t), "root")
	for _, dir := range []string{
		root, filepath.Join(root, "bin"), filepath.Join(root, "etc"), filepath.Join(root, "work"),
		filepath.Join(root, filesMount),
	} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string][]byte{"bin/program": buildProgram(t), "etc/mine": []byte("mine"), filesMount +
		"/theirs": nil} {
		if err := os.WriteFile(filepath.Join(root, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folders{imageDigest: {Path: root, Config: unpack.RuntimeConfig{
		Entrypoint: []string{"program"}, Env: []string{"PATH=/nowhere:/bin", "FROM_IMAGE=1", "BOTH=image"},
		WorkingDir: "work",
	}}}
}

// openTemp returns a folder for the test that other users may look into.
func openTemp(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; strings.HasPrefix(at, os.TempDir()+"/"); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newSupervisor returns a supervisor that is closed at the end of the test.
func newSupervisor(t testing.TB, change func(*Options)) *Supervisor {
	t.Helper()
	o := Options{
		Dir: filepath.Join(openTemp(t), "data"), Log: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
		Grace: 5 * time.Second, WatchEvery: 20 * time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	if o.Images == nil {
		o.Images = image(t)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// spec returns the spec of a test program that serves on a free port.
func spec(t testing.TB, name string) Spec {
	t.Helper()
	return Spec{Name: name, Digest: imageDigest, Env: map[string]string{"PORT": freePort(t)}}
}

func freePort(t testing.TB) string {
	t.Helper()
	_, number, err := net.SplitHostPort(port.Free(t))
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// ask sends a request to the test program. It returns a refusal as an error.
func ask(s Spec, what, argument string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://127.0.0.1:" + s.Env["PORT"] + "/" + what + "?a=" + url.QueryEscape(argument))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(body)))
	}
	return string(body), err
}

func mustAsk(t testing.TB, s Spec, what, argument string) string {
	t.Helper()
	got, err := ask(s, what, argument)
	if err != nil {
		t.Fatalf("%s %s: %v", what, argument, err)
	}
	return got
}

// begin starts a runtime and waits until it serves.
func begin(t testing.TB, s *Supervisor, spec Spec) {
	t.Helper()
	if err := s.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s said:\n%s", spec.Name, readLog(t, s, spec.Name, 40))
		}
	})
	serving(t, spec)
}

func serving(t testing.TB, spec Spec) {
	t.Helper()
	wait.Until(t, patience, "the program serves", func() (string, bool) {
		_, err := ask(spec, "list", "/")
		return fmt.Sprint(err), err == nil
	})
}

type sight struct {
	Args, Env, Processes []string
	UID, GID, PID        int
	Groups               []int
	Dir, Host            string
	Status               map[string]string
	Limits               map[string]uint64
	Nice                 int
}

func see(t testing.TB, spec Spec) sight {
	t.Helper()
	var s sight
	if err := json.Unmarshal([]byte(mustAsk(t, spec, "see", "")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// status waits until the status of a runtime meets a condition.
func status(t testing.TB, s *Supervisor, name, what string, good func(Status) bool) Status {
	t.Helper()
	var last Status
	wait.Until(t, patience, what, func() (string, bool) {
		var ok bool
		last, ok = s.Status(name)
		return fmt.Sprintf("%+v, last exit %+v, %v", last, last.LastExit, ok), ok && good(last)
	})
	return last
}

// gone reports whether a host process has exited.
func gone(pid int) bool {
	status, err := os.ReadFile(processFile(pid, "status"))
	return err != nil || strings.Contains(string(status), "State:\tZ")
}

// ownerOf returns the user of a process, as this machine sees it.
func ownerOf(t testing.TB, pid int) int {
	t.Helper()
	status, err := os.ReadFile(processFile(pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	return int(field(status, "Uid:"))
}

const superviseCommand = "supervise"
