package node_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// sandbox is a set of namespaces (network, mounts and processes) of their own, in which the programs of a node run.
// When its first process ends, the kernel ends all others and removes the mounts and interfaces.
type sandbox struct {
	init *exec.Cmd
	// dir contains all files of the node. Its path is short, because sockets are in it.
	dir  string
	logs map[string]*buffer.Buffer
}

// setUp runs as the first process. Folders to which containerd and kubelet write at fixed paths are empty, and belong
// to the sandbox. The addresses are those of the Service kubernetes, on which the API server itself listens, and of the
// node.
const setUp = `set -e
mount --make-rprivate /
mount -t proc proc /proc
for dir in /var/lib/cni /var/log/containers /run/containerd /var/lib/kubelet; do
	mkdir -p $dir
	mount -t tmpfs tmpfs $dir
done
ip link set lo up
ip addr add 10.0.0.1/32 dev lo
ip addr add 10.99.0.1/32 dev lo
echo ready
exec sleep infinity`

// newSandbox starts a sandbox, which ends with the test.
func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "xpkg-node-")
	if err != nil {
		t.Fatal(err)
	}
	s := &sandbox{init: exec.Command("sh", "-c", setUp), dir: dir, logs: map[string]*buffer.Buffer{}}
	program.DieWithTest(s.init)
	s.init.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	var log buffer.Buffer
	s.init.Stdout, s.init.Stderr = &log, &log
	before := cgroups(t)
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel kills the process when the thread ends that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.init.Start()
		started <- err
		if err == nil {
			_ = s.init.Wait() // It is killed.
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("cannot make namespaces: %v", err)
	}
	t.Cleanup(func() {
		_ = s.init.Process.Kill()
		<-ended
		removeCgroups(t, before)
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the node left files: %v", err)
		}
		if t.Failed() {
			s.printLogs(t)
		}
	})
	wait.Until(t, patience, "the sandbox starts", func() (string, bool) { return log.String(), log.String() == "ready\n" })
	return s
}

// command returns a command that runs in the sandbox.
func (s *sandbox) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	enter := []string{"--target", strconv.Itoa(s.init.Process.Pid), "--net", "--mount", "--pid", "--", name}
	cmd := exec.CommandContext(t.Context(), "nsenter", append(enter, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig(), "HOME="+s.dir)
	return cmd
}

// run runs a command, and returns its output.
func (s *sandbox) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := s.try(t, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return out
}

// try runs a command that may fail, and returns its output.
func (s *sandbox) try(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	out, err := s.command(t, name, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// start starts a program that runs until the sandbox ends.
func (s *sandbox) start(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := s.command(t, name, args...)
	log := &buffer.Buffer{}
	s.logs[filepath.Base(name)] = log
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // It ends with the sandbox.
	}()
	t.Cleanup(func() {
		_ = s.init.Process.Kill()
		<-ended
	})
}

// printLogs prints the end of the log of each program.
func (s *sandbox) printLogs(t *testing.T) {
	t.Helper()
	for name, log := range s.logs {
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		t.Logf("%s:\n%s", name, strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
}

// write writes a file of testdata into the folder of the node. DIR in it stands for the folder.
func (s *sandbox) write(t *testing.T, source, target string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir, target)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(content), "DIR", s.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// path returns the path of a file of the node.
func (s *sandbox) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *sandbox) kubeconfig() string { return s.path("plane", "kubeconfig") }

// cgroups returns the cgroups of containerd in each hierarchy.
func cgroups(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/sys/fs/cgroup/k8s.io", "/sys/fs/cgroup/*/k8s.io"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// removeCgroups removes the cgroups that did not exist before. All of their processes have ended.
func removeCgroups(t *testing.T, before []string) {
	t.Helper()
	for _, top := range cgroups(t) {
		if slices.Contains(before, top) {
			continue
		}
		var folders []string
		err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				folders = append(folders, path)
			}
			return err
		})
		for _, folder := range slices.Backward(folders) {
			err = errors.Join(err, os.Remove(folder))
		}
		if err != nil {
			t.Logf("a cgroup was left: %v", err)
		}
	}
}
