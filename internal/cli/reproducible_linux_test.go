package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
)

// builder is an environment in which a package is built.
type builder struct {
	name  string
	umask int
	mode  os.FileMode
	when  time.Time
	// user is the number of another user; 0 is the one that runs the test.
	user uint32
	zone string
}

// The same input has the same output, byte for byte, for every user, time and place.
func TestReproducible(t *testing.T) {
	program := programCopy(t)
	builders := []builder{
		{name: "Plain", umask: 0o022, mode: 0o644, when: time.Unix(1_000_000_000, 0), zone: "UTC"},
		{name: "Private", umask: 0o077, mode: 0o600, when: time.Unix(2_000_000_000, 5), zone: "Asia/Tokyo"},
		{name: "Open", umask: 0, mode: 0o777, when: time.Unix(1, 0), zone: "America/New_York"},
		{name: "OtherUser", umask: 0o027, mode: 0o640, when: time.Unix(3, 0), user: 65534, zone: "UTC"},
	}
	var first []byte
	for _, b := range builders {
		t.Run(b.name, func(t *testing.T) {
			if b.user != 0 && os.Getuid() != 0 {
				prerequisite.Missing(t, "only root can become another user")
			}
			got := b.build(t, program)
			if first == nil {
				first = got
			}
			if string(got) != string(first) {
				t.Errorf("the file of %d bytes is another one than the first of %d bytes", len(got), len(first))
			}
		})
	}
}

// programCopy is this test under the name of the command, where others may run it.
func programCopy(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	path := filepath.Join(sharedDir(t), "xpkg")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	// The umask may exclude other users.
	if err := errors.Join(out.Chmod(0o755), out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// sharedDir returns a temporary folder that other users can enter.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (b builder) build(t *testing.T, program string) []byte {
	t.Helper()
	dir := filepath.Join(sharedDir(t), strings.Repeat(b.name, 3))
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "provider-hello", "package"))); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			err = os.Chmod(path, b.mode)
		}
		if err == nil && b.user != 0 {
			err = os.Chown(path, int(b.user), int(b.user))
		}
		if err == nil {
			err = os.Chtimes(path, b.when, b.when)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The umask belongs to the process, so a shell sets it.
	cmd := exec.Command("sh", "-c", "umask "+fmt.Sprintf("%04o", b.umask)+` && exec "$0" build -o out.xpkg`, program)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TZ=" + b.zone, "PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	if b.user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: b.user, Gid: b.user}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return read(t, filepath.Join(dir, "out.xpkg"))
}
