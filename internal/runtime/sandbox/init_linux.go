package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/descriptors"
)

// Init runs a runtime in its sandbox. The main function must call it if the executable is run with
// [InitCommand]. Init reads the sandbox spec from the files that the supervisor opened, prepares
// the sandbox, and executes the runtime. It returns if that fails, after a probe and, if it acts as
// the reaper of the runtime, after the exit of the runtime.
func Init() error {
	// The settings below apply to one thread, which must also execute the runtime.
	runtime.LockOSThread()
	control, reports, err := openPipes()
	if err != nil {
		return err
	}
	var s sandboxSpec
	if err := json.NewDecoder(control).Decode(&s); err != nil {
		return fmt.Errorf("cannot read the sandbox spec: %w", err)
	}
	if s.Kind == asReaper {
		return runReaper(s, control, reports)
	}
	err = s.become(control, reports)
	var failed *stageError
	if !errors.As(err, &failed) {
		failed = &stageError{"start it", err}
	}
	return errors.Join(failed, send(reports, report{Stage: failed.stage, Error: failed.err.Error()}))
}

// openPipes opens the two pipes to the supervisor. It marks them, and every other
// inherited descriptor, close-on-exec: an open directory of the host would break any
// isolation.
func openPipes() (control, reports *os.File, err error) {
	for _, fd := range []int{controlFile, reportFile} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			return nil, nil, errors.New("this command is run by xpkg itself")
		}
	}
	if err := descriptors.CloseOnExec(controlFile); err != nil {
		return nil, nil, fmt.Errorf("close inherited descriptors: %w", err)
	}
	return os.NewFile(controlFile, "control"), os.NewFile(reportFile, "report"), nil
}

// become prepares the sandbox and executes the runtime. It returns only on failure, or
// after a probe.
func (s sandboxSpec) become(control, reports *os.File) error {
	unix.Umask(0o022)
	steps := []func() error{s.preferToKill} // The new root may lack /proc.
	switch s.Kind {
	case inNamespaces:
		steps = append(steps, s.limitNamespace, s.enterRoot, s.nameHost)
	case inChroot:
		steps = append(steps, s.changeRoot)
	}
	steps = append(steps, s.linkFiles, s.workingFolder, s.limit, s.dropPrivileges)
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if err := dieWithParent(control); err != nil {
		return stage("tie the program to xpkg", err)
	}
	if err := keepApart(); err != nil {
		return stage("keep the program apart from this machine", err)
	}
	var supervisor *os.File
	if s.Relocates {
		supervisor = os.NewFile(portsFile, "ports")
	}
	if err := forbidCalls(supervisor); err != nil {
		return stage("forbid system calls", err)
	}
	if err := send(reports, report{Ready: true}); err != nil || s.Probe {
		return err
	}
	return stage("execute "+s.Path, unix.Exec(s.Path, s.Args, s.Env))
}

// stage adds the name of a step to an error.
func stage(name string, err error) error {
	if err == nil {
		return nil
	}
	return &stageError{name, err}
}

func (s sandboxSpec) nameHost() error {
	return stage("set the host name", unix.Sethostname([]byte(s.hostname())))
}

// hostname returns the first 63 characters of the name, the maximum length of a host name.
func (s sandboxSpec) hostname() string { return s.Name[:min(len(s.Name), 63)] }

func (s sandboxSpec) changeRoot() error {
	if err := errors.Join(os.Chdir(s.Root), unix.Chroot("."), os.Chdir("/")); err != nil {
		return stage("change the root", err)
	}
	// If the machine also forbids creating devices, the runtime has none.
	makeDevices()
	return stage("make /tmp", makeTemp())
}

// linkFiles creates links to the given files at their configured paths.
func (s sandboxSpec) linkFiles() error {
	for _, name := range s.Paths {
		err := os.MkdirAll(path.Dir(name), 0o755)
		if err == nil {
			err = ignoreAbsent(os.Remove(name))
		}
		if err == nil {
			err = os.Symlink(path.Join(filesMount, currentFiles, name), name)
		}
		if err != nil {
			return stage("put the file "+name+" in its place", err)
		}
	}
	return nil
}

// workingFolder changes to the working directory, and creates it if necessary, as
// container engines do.
func (s sandboxSpec) workingFolder() error {
	if s.Dir == "" {
		return nil
	}
	return stage("go to the working folder "+s.Dir, errors.Join(os.MkdirAll(s.Dir, 0o755), os.Chdir(s.Dir)))
}

const (
	// oomScoreFile contains the adjustment of the score with which the OOM killer of the
	// kernel selects a process. A process with maxOOMScore is always selected first.
	oomScoreFile = "/proc/self/oom_score_adj"
	maxOOMScore  = 1000
)

// preferToKill makes the OOM killer select the runtime before all other processes. The runtime
// cannot revert that in namespaces, where its /proc is read-only, and in a chroot, which has no
// /proc. A kernel without the adjustment is not an error.
func (s sandboxSpec) preferToKill() error {
	err := os.WriteFile(oomScoreFile, []byte(strconv.Itoa(maxOOMScore)), 0)
	return stage("set "+oomScoreFile, ignoreAbsent(err))
}

// dropPrivileges changes to the unprivileged user and drops every capability,
// permanently. It affects only this thread, which executes the runtime.
func (s sandboxSpec) dropPrivileges() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP+unusedCapabilities; capability++ {
		// EPERM means that there are no capabilities to drop, EINVAL that the capability
		// does not exist.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			return stage("drop capabilities", err)
		}
	}
	if s.User != 0 {
		if err := setUser(s.User); err != nil {
			return stage("change the user", err)
		}
	}
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err == nil {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		err = unix.Capset(&header, &none[0])
	}
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	return stage("drop capabilities", err)
}

// unusedCapabilities is the number of capabilities that a newer kernel may add.
const unusedCapabilities = 8

// setUser changes the user of this thread. The functions of the standard library change
// the user of all threads, for which each thread would need the capabilities.
func setUser(id int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("setgroups: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(id), uintptr(id), uintptr(id)); errno != 0 {
		return fmt.Errorf("setresgid: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(id), uintptr(id), uintptr(id)); errno != 0 {
		return fmt.Errorf("setresuid: %w", errno)
	}
	return nil
}

// dieWithParent makes the kernel kill the runtime when the thread that started this process exits.
// A change of the user resets the setting, so dieWithParent must be called after it. It fails if
// the parent has already exited, which closes the control file.
func dieWithParent(control *os.File) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	poll := []unix.PollFd{{Fd: int32(control.Fd())}}
	if _, err := unix.Poll(poll, 0); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	if poll[0].Revents&unix.POLLHUP != 0 {
		return errors.New("xpkg has ended")
	}
	return nil
}
