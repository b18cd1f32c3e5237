package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/filetree"
)

// nobody is the user without rights.
const nobody = 65534

// asAnotherUser returns the command that runs this test binary in folders that the user
// nobody may use. The caller sets the user.
func asAnotherUser(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir := openTemp(t)
	binary, program, temp := filepath.Join(dir, "process.test"), filepath.Join(dir, "program"), filepath.Join(dir, "temp")
	if err := filetree.CopyFile(os.Args[0], binary); err != nil {
		t.Fatal(err)
	}
	// Go builds the test with the umask of the user.
	if err := os.Chmod(binary, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, buildProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(temp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), programVariable+"="+program, "TMPDIR="+temp, "HOME="+temp)
	return cmd
}

// Most users are not root. When run as root, this test runs the tests again as an
// unprivileged user.
func TestAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is another user")
	}
	if testing.Short() {
		t.Skip("it runs most of the tests again")
	}
	cmd := asAnotherUser(
		t, "-test.v", "-test.run=TestRuntime|TestMemory|TestKilled|TestWithout|TestFiles|TestRestart|TestPorts",
	)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	t.Logf("as another user:\n%s", out)
	if !strings.Contains(string(out), "--- PASS: TestRuntime") &&
		!strings.Contains(string(out), "this machine forbids namespaces") {
		t.Errorf("nothing was tested:\n%s", out)
	}
}
