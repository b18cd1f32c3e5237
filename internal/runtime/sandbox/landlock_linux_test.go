package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"golang.org/x/sys/unix"
)

// scopes is the version of Landlock that can deny signals and abstract sockets.
const scopes = 6

// A runtime cannot connect to abstract Unix sockets of the machine. It cannot send signals to
// processes of the machine or read their environment either, not even those of its own user.
//
// hardening: H19
func TestRuntimeIsKeptApartFromItsUser(t *testing.T) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || version < scopes {
		prerequisite.Missing(
			t, "this kernel cannot deny signals and abstract sockets; use Linux 6.12 or newer with Landlock: %v", errno,
		)
	}
	name := fmt.Sprintf("@xpkg-test-%d", os.Getpid())
	listener, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		spec := spec(t, "apart")
		begin(t, s, spec)
		if _, err := ask(spec, "dial", name); err == nil || !strings.Contains(err.Error(), "not permitted") {
			t.Errorf("it connects to an abstract socket of the machine: %v", err)
		}
		mustAsk(t, spec, "listen", name+"-inside-"+spec.Env["PORT"])
		mustAsk(t, spec, "dial", name+"-inside-"+spec.Env["PORT"])

		bystander := exec.Command("sleep", "600")
		isolation, _ := s.Status(spec.Name)
		if strings.HasPrefix(isolation.Isolation, "chroot") {
			bystander.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: outsideUser, Gid: outsideUser}}
		}
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = bystander.Process.Kill()
			_ = bystander.Wait()
		}()
		pid := strconv.Itoa(bystander.Process.Pid)
		if _, err := ask(spec, "kill", pid); err == nil {
			t.Error("it sends signals to another process of its user")
		}
		if _, err := ask(spec, "read", "/proc/"+pid+"/environ"); err == nil {
			t.Error("it reads the environment of another process of its user")
		}
		if strings.HasPrefix(isolation.Isolation, "none") {
			return // Its folders are those of the machine.
		}
		// Landlock can also deny to move files, which runtimes need.
		mustAsk(t, spec, "write", "/tmp/a")
		mustAsk(t, spec, "mkdir", "/tmp/folder")
		mustAsk(t, spec, "rename", "/tmp/a /tmp/folder/a")
	})
}
