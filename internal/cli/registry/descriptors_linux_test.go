package registry_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/internal/testing/hold"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	// serveVariable makes the test binary a registry server with this folder.
	serveVariable = "XPKG_TEST_SERVE"
	// mostDescriptors is the number of descriptors that the server may have.
	mostDescriptors = 256
	deadline        = 30 * time.Second
)

// TestServeProcess is the registry server of other tests, in a process of its own.
func TestServeProcess(t *testing.T) {
	dir := os.Getenv(serveVariable)
	if dir == "" {
		t.Skip("runs only as a process of another test")
	}
	few := unix.Rlimit{Cur: mostDescriptors, Max: mostDescriptors}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: os.Stdout, Stderr: os.Stderr}
	cli.Main(t.Context(), []string{"xpkg", "registry", "serve", "--dir", dir, "--listen", "127.0.0.1:0"}, env)
}

// process is a registry server in a process of its own.
type process struct {
	pid            int
	dir            string
	alice, mallory hold.Client
	log            *os.File
}

// startProcess starts a server with few descriptors, one user that works, and one that does not mean well.
func startProcess(t *testing.T) *process {
	t.Helper()
	p := &process{dir: t.TempDir()}
	rules := "rules:\n- {prefix: acme, owners: [alice]}\n- {prefix: mal, owners: [mallory]}\n"
	if err := os.WriteFile(filepath.Join(p.dir, "access.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServeProcess$") //nolint:gosec // It is this binary.
	cmd.Env = append(os.Environ(), serveVariable+"="+p.dir)
	program.DieWithTest(cmd)
	var err error
	if p.log, err = os.Create(filepath.Join(t.TempDir(), "log")); err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = p.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It fails if the process has ended.
		_ = cmd.Wait()         // It was killed.
	})
	p.pid = cmd.Process.Pid
	line, err := bufio.NewReader(out).ReadString('\n')
	_, address, ok := strings.Cut(strings.TrimSpace(line), "http://")
	if !ok {
		t.Fatalf("the server prints %q: %v", line, err)
	}
	p.alice = hold.Client{Address: address, Token: p.token(t, "alice"), Prefix: "acme"}
	p.mallory = hold.Client{Address: address, Token: p.token(t, "mallory"), Prefix: "mal"}
	wait.Until(t, deadline, "the server is ready", func() (string, bool) {
		resp, err := http.Get("http://" + address + "/healthz") //nolint:noctx // The wait has a limit.
		if err != nil {
			return err.Error(), false
		}
		return resp.Status, resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	p.alice.Pull = p.alice.PushBlob(t)
	p.mallory.Pull = p.alice.Pull
	p.alice.Check(t, "before")
	return p
}

func (p *process) token(t *testing.T, user string) string {
	t.Helper()
	scope := access.Scope{Repositories: []string{"*"}, Actions: access.Actions()}
	secret, _, err := tokens.Open(p.dir, nil).Create(user, "test", scope, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// descriptors returns the number of open descriptors of the server.
func (p *process) descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// TestNoClientExhaustsAProcess makes a user without special permissions hold everything that a client can hold, far
// beyond the limits of a server with 256 descriptors. Another user goes on working, and the server keeps a quarter of
// its descriptors.
func TestNoClientExhaustsAProcess(t *testing.T) {
	p := startProcess(t)
	base := p.descriptors(t)
	for _, h := range hold.Holders {
		var release []func()
		for i := range 2 * mostDescriptors {
			release = append(release, h.Hold(t, p.mallory, i))
		}
		p.alice.Check(t, h.Name)
		if n, most := p.descriptors(t), mostDescriptors*3/4; n > most {
			t.Errorf("%s: %d descriptors, want at most %d", h.Name, n, most)
		}
		for _, r := range release {
			r()
		}
		wait.Until(t, deadline, "the descriptors are closed after: "+h.Name, func() (string, bool) {
			n := p.descriptors(t)
			return fmt.Sprint(n), n <= base+10
		})
	}
}

// TestLackOfDescriptorsIsNoDamage takes all descriptors from a server. It refuses requests for the time, unless it
// needs no file for them, and changes and reports no content as damaged.
func TestLackOfDescriptorsIsNoDamage(t *testing.T) {
	p := startProcess(t)
	repository := "/v2/acme/boats"
	const refused = http.StatusServiceUnavailable
	requests := []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/healthz", refused},
		{http.MethodGet, repository + "/manifests/latest", refused},
		{http.MethodHead, repository + "/manifests/latest", refused},
		{http.MethodGet, p.alice.Pull, refused},
		{http.MethodGet, repository + "/tags/list", http.StatusOK},
		{http.MethodGet, repository + "/referrers/sha256:" + strings.Repeat("a", 64), http.StatusOK},
		{http.MethodPost, repository + "/blobs/uploads/", refused},
		{http.MethodPost, "/v2/acme/rafts/blobs/uploads/", refused},
		{http.MethodPut, repository + "/manifests/other", http.StatusBadRequest}, // It is empty.
		{http.MethodDelete, repository + "/manifests/latest", refused},
		{http.MethodGet, "/v2/_catalog", refused},
	}
	client := &http.Client{Timeout: deadline}
	send := func(method, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.alice.Address+path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+p.alice.Token)
		resp, err := client.Do(r) // It has a connection.
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	send(http.MethodGet, "/healthz")
	before := p.files(t)
	var former unix.Rlimit
	if err := unix.Prlimit(p.pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: mostDescriptors}, &former); err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if status, text := send(r.method, r.path); status != r.status || strings.Contains(text, "DAMAGED") {
			t.Errorf("%s %s without descriptors: %d %s", r.method, r.path, status, text)
		}
	}
	if err := unix.Prlimit(p.pid, unix.RLIMIT_NOFILE, &former, nil); err != nil {
		t.Fatal(err)
	}
	if after := p.files(t); after != before {
		t.Errorf("the files are\n%s\nand were\n%s", after, before)
	}
	if status, text := send(http.MethodGet, "/healthz"); status != http.StatusOK || !strings.Contains(text, `"ok"`) {
		t.Errorf("the health is %d %s", status, text)
	}
	p.alice.Check(t, "afterwards")
	log, err := os.ReadFile(p.log.Name())
	if err != nil || bytes.Contains(log, []byte("damaged")) {
		t.Errorf("%v: the log reports damage:\n%s", err, log)
	}
}

// files returns the names and sizes of the files with content.
func (p *process) files(t *testing.T) string {
	t.Helper()
	var found strings.Builder
	root := filepath.Join(p.dir, "registry")
	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			fmt.Fprintln(&found, strings.TrimPrefix(path, root), info.Size())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found.String()
}
