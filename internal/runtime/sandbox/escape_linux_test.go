package sandbox

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/filetree"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
)

// hostileImage returns an image whose entrypoint is a script that the executable of init
// interprets, with a loader for it. The loader keeps a descriptor of the executable, and
// executes the test program.
func hostileImage(t *testing.T, executable string) folders {
	t.Helper()
	images := image(t)
	root := images[imageDigest]
	loader := filepath.Join(root.Path, loaderOf(t, executable))
	if err := os.MkdirAll(filepath.Dir(loader), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		loader: buildProgram(t), filepath.Join(root.Path, "bin/script"): []byte("#!/proc/self/exe\n"),
	} {
		if err := os.WriteFile(name, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root.Config.Entrypoint = []string{"/bin/script"}
	images[imageDigest] = root
	return images
}

// loaderOf returns the path of the loader of an executable.
func loaderOf(t *testing.T, executable string) string {
	t.Helper()
	f, err := elf.Open(executable)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	section := f.Section(".interp")
	if section == nil {
		prerequisite.Missing(t, "this test is not linked dynamically: install a C compiler, and set CGO_ENABLED=1")
	}
	path, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimRight(path, "\x00"))
}

// ownExecutable returns a copy of this test, which the user of this process owns.
func ownExecutable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(openTemp(t), "xpkg")
	if err := filetree.CopyFile(os.Args[0], path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A runtime can get a descriptor of the executable of init (CVE-2019-5736). It can neither
// change the executable on this machine nor keep other runtimes from starting.
//
// hardening: H11
func TestRuntimeCannotOverwriteTheProgramThatStartsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("it copies and reads its own executable, which takes long")
	}
	executable := ownExecutable(t)
	before, err := os.ReadFile(executable)
	if err != nil {
		t.Fatal(err)
	}
	images := hostileImage(t, executable)
	s := newSupervisor(t, func(o *Options) { o.Images, o.Executable = images, executable })
	needNamespaces(t, s)
	hostile := spec(t, "hostile")
	begin(t, s, hostile)
	_, err = ask(hostile, "overwrite", "")
	if err == nil ||
		!strings.Contains(err.Error(), "not permitted") && !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("the runtime wrote to the executable of init: %v", err)
	}
	after, err := os.ReadFile(executable)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the runtime has changed the executable on this machine (%v)", err)
	}
	other := spec(t, "other")
	begin(t, s, other)
}

const (
	// forbidMemoryCommand runs this test binary as another user, where files in memory
	// cannot be executed.
	forbidMemoryCommand = "forbid-memory"
	memorySetting       = "/proc/sys/vm/memfd_noexec"
)

// forbidMemory changes the setting in the namespaces that were created for the test, and
// executes the tests.
func forbidMemory() error {
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, ""),
	)
	err = errors.Join(
		err, os.WriteFile(memorySetting, []byte("2"), 0), syscall.Setgroups(nil), syscall.Setgid(nobody),
		syscall.Setuid(nobody),
	)
	if err != nil {
		return err
	}
	return syscall.Exec(os.Args[0], slices.Concat(os.Args[:1], os.Args[2:]), os.Environ())
}

// The promise also holds on a machine that forbids executable files in memory.
func TestRuntimeCannotOverwriteTheCopyOnDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can forbid executable files in memory")
	}
	if _, err := os.Stat(memorySetting); err != nil {
		prerequisite.Missing(t, "this kernel cannot forbid executable files in memory; use Linux 6.3 or newer: %v", err)
	}
	loaderOf(t, "/proc/self/exe") // The other process is this test, which must be linked dynamically.
	cmd := asAnotherUser(t, forbidMemoryCommand, "-test.v", "-test.run=^TestRuntimeCannotOverwriteTheProgramThatStartsIt$")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "this machine forbids executable files in memory") ||
		strings.Contains(text, "SKIP") {
		t.Errorf("%v:\n%s", err, out)
	}
}
