package sandbox

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// needNamespaces skips where the machine forbids them.
func needNamespaces(t testing.TB, s *Supervisor) {
	t.Helper()
	g, err := s.launcher.detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if g.kind != inNamespaces {
		prerequisite.Missing(t, "this machine forbids user namespaces: %s", g)
	}
}

func TestRuntimeSeesOnlyItsNamespaces(t *testing.T) {
	s := newSupervisor(t, nil)
	needNamespaces(t, s)
	spec := spec(t, "hello-0123456789ab")
	spec.Args = []string{"serve", "--flag=$(NOT_EXPANDED)"}
	maps.Copy(spec.Env, map[string]string{"BOTH": "spec", "MINE": "a=b c"})
	spec.Files = map[string][]byte{
		"/tls/server/tls.crt": []byte("certificate"), "/tls/server/tls.key": []byte("key"), "/etc/mine": []byte("given"),
	}
	spec.Processes = 300
	t.Setenv("XPKG_SECRET_OF_THE_SUPERVISOR", "1")
	begin(t, s, spec)

	got := see(t, spec)
	if diff := cmp.Diff([]string{"program", "serve", "--flag=$(NOT_EXPANDED)"}, got.Args); diff != "" {
		t.Error(diff)
	}
	wantEnv := []string{
		"BOTH=spec", "FROM_IMAGE=1", "HOME=/", "HOSTNAME=hello-0123456789ab", "MINE=a=b c", "PATH=/nowhere:/bin",
		"PORT=" + spec.Env["PORT"],
	}
	slices.Sort(got.Env)
	if diff := cmp.Diff(wantEnv, got.Env); diff != "" {
		t.Error(diff)
	}
	if got.Dir != "/work" || got.Host != spec.Name || got.UID != 2000 || got.GID != 2000 || got.PID != 1 {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"1"}, got.Processes); diff != "" {
		t.Errorf("it sees other processes: %s", diff)
	}
	for name, want := range map[string]string{
		"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0000000000000000", "CapPrm": "0000000000000000",
		"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "CapInh": "0000000000000000",
	} {
		if got.Status[name] != want {
			t.Errorf("%s is %s, want %s", name, got.Status[name], want)
		}
	}
	if got.Limits["core"] != 0 || countsByNamespace() && got.Limits["processes"] != 300 {
		t.Errorf("limits: %v", got.Limits)
	}
	if os.Geteuid() == 0 && len(got.Groups) != 0 {
		t.Errorf("it has the groups %v", got.Groups)
	}
	for dir, want := range map[string]string{
		"/": ".xpkg-files bin dev etc proc tls tmp work", "/dev": "fd full null random shm stderr stdin stdout urandom zero",
		"/tls/server": "tls.crt tls.key",
	} {
		if list := mustAsk(t, spec, "list", dir); list != want {
			t.Errorf("%s has %s, want %s", dir, list, want)
		}
	}
	for name, want := range map[string]string{
		"/tls/server/tls.crt": "certificate", "/etc/mine": "given", "/dev/null": "",
	} {
		if data := mustAsk(t, spec, "read", name); data != want {
			t.Errorf("%s holds %q", name, data)
		}
	}
	for _, name := range []string{
		"/etc/passwd", "/root", s.opts.Dir, "/.xpkg-machine", "/proc/1/root/etc/shadow", "/proc/kcore",
	} {
		if data, err := ask(spec, "read", name); err == nil {
			t.Errorf("it can read %s: %.20q", name, data)
		}
	}
	checkMachineFiles(t, spec)
	status, ok := s.Status(spec.Name)
	if !ok || !status.Running || !strings.HasPrefix(status.Isolation, "namespaces") || status.PID == 0 ||
		status.Since.IsZero() {
		t.Errorf("got %+v", status)
	}
	if uid := ownerOf(t, status.PID); os.Geteuid() == 0 && uid != outsideUser {
		t.Errorf("on this machine it is user %d", uid)
	}
}

// checkMachineFiles checks that the runtime resolves names and trusts CAs as the host
// does.
func checkMachineFiles(t *testing.T, spec Spec) {
	t.Helper()
	for _, b := range machineFiles() {
		want, err := os.ReadFile(b.From)
		if err != nil {
			t.Fatal(err)
		}
		if got := mustAsk(t, spec, "read", b.To); got != string(want) {
			t.Errorf("%s is not that of the machine", b.To)
		}
		if _, err := ask(spec, "write", b.To); err == nil {
			t.Errorf("%s can be written", b.To)
		}
	}
}

func TestRuntimeCanWriteOnlyTheseFiles(t *testing.T) {
	images := image(t)
	s := newSupervisor(t, func(o *Options) { o.Images = images })
	needNamespaces(t, s)
	spec := spec(t, "writer")
	spec.Files = map[string][]byte{"/tls/tls.crt": []byte("1")}
	begin(t, s, spec)
	for _, name := range []string{"/tmp/x", "/dev/shm/x"} {
		if _, err := ask(spec, "write", name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{
		"/.xpkg-files/..data/tls/tls.crt", "/.xpkg-files/x", "/dev/x", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger",
	} {
		if _, err := ask(spec, "write", name); err == nil {
			t.Errorf("%s can be written", name)
		}
	}
	if os.Geteuid() == 0 {
		for _, name := range []string{"/bin/program", "/etc/mine", "/x"} {
			if _, err := ask(spec, "write", name); err == nil {
				t.Errorf("%s, which is root's, can be written", name)
			}
		}
	}
	// The writes of a runtime are discarded at its next start, and never reach the image.
	if _, err := ask(spec, "exit", "0"); err == nil {
		t.Error("it goes on")
	}
	status(t, s, spec.Name, "it runs again", func(s Status) bool { return s.Running && s.Restarts == 1 })
	serving(t, spec)
	if list := mustAsk(t, spec, "list", "/tmp"); list != "" {
		t.Errorf("/tmp has %s", list)
	}
	entries, err := os.ReadDir(images[imageDigest].Path)
	if err != nil || len(entries) != 4 {
		t.Errorf("the image was changed: %v, %v", entries, err)
	}
}

func TestRuntimeCannotMakeTheseCalls(t *testing.T) {
	s := newSupervisor(t, nil)
	needNamespaces(t, s)
	spec := spec(t, "caller")
	begin(t, s, spec)
	for _, call := range []string{"unshare", "clone", "mount", "chroot", "setuid", "bpf"} {
		if _, err := ask(spec, "call", call); err == nil ||
			!strings.Contains(err.Error(), "not permitted") && !strings.Contains(err.Error(), "invalid argument") {
			t.Errorf("%s: %v", call, err)
		}
	}
	// The call reports success but has no effect: the runtime still exits with the
	// supervisor.
	if _, err := ask(spec, "call", "pdeathsig"); err != nil {
		t.Error(err)
	}
	if _, err := ask(spec, "kill", "1"); err != nil {
		t.Error(err) // The first process of a namespace cannot be killed from within.
	}
	if _, err := ask(spec, "spawn", ""); err != nil {
		t.Errorf("it cannot start processes of its own: %v", err)
	}
}

// A process inherits every descriptor that is not closed on execution. An open
// directory would lead out of the isolation, and an open pipe to another process.
func TestARuntimeInheritsNoDescriptor(t *testing.T) {
	planted := []string{plant(t, "/", unix.O_DIRECTORY), plant(t, "/etc/hosts", 0), plantPipe(t)}
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		spec := spec(t, "heir")
		begin(t, s, spec)
		open := strings.Fields(mustAsk(t, spec, "descriptors", ""))
		if len(open) < 3 {
			t.Fatalf("the program has the descriptors %v", open)
		}
		for _, file := range planted {
			if slices.Contains(open, file) {
				t.Errorf("the program has the descriptor of %s among %v", file, open)
			}
		}
	})
}

// plant opens a file with a descriptor that children inherit, and returns its device
// and inode.
func plant(t *testing.T, name string, flags int) string {
	t.Helper()
	fd, err := unix.Open(name, unix.O_RDONLY|flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return identity(t, fd)
}

func plantPipe(t *testing.T) string {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(ends[0]); unix.Close(ends[1]) })
	return identity(t, ends[1])
}

func identity(t *testing.T, fd int) string {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// Run by hand, init prints its purpose and does nothing.
func TestInitByHand(t *testing.T) {
	out, err := exec.Command(os.Args[0], InitCommand).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "this command is run by xpkg itself") {
		t.Errorf("got %v, %s", err, out)
	}
}
