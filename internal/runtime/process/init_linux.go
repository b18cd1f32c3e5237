package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Init is the step between a supervisor and a program. It is called by the main
// function of an executable that was run with [InitCommand], reads from the open
// files that the supervisor gives it what to do, and becomes the program. It returns
// when it cannot, and after the end of the program where it has to guard that.
func Init() error {
	// What is set up below belongs to one thread, and so must be the one that becomes
	// the program.
	runtime.LockOSThread()
	control, reports, err := openPipes()
	if err != nil {
		return err
	}
	var s setup
	if err := json.NewDecoder(control).Decode(&s); err != nil {
		return fmt.Errorf("cannot read what to start: %w", err)
	}
	if s.Kind == asGuard {
		return guard(s, control, reports)
	}
	err = s.become(control, reports)
	var failed *stageError
	if !errors.As(err, &failed) {
		failed = &stageError{"start it", err}
	}
	return errors.Join(failed, send(reports, report{Stage: failed.stage, Error: failed.err.Error()}))
}

// openPipes takes the open files, and keeps them from the program.
func openPipes() (control, reports *os.File, err error) {
	for _, fd := range []int{controlFile, reportFile} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			return nil, nil, errors.New("this command is run by xpkg itself")
		}
		unix.CloseOnExec(fd)
	}
	return os.NewFile(controlFile, "control"), os.NewFile(reportFile, "report"), nil
}

// become prepares the place and executes the program. It returns only if it fails,
// or when it was a probe.
func (s setup) become(control, reports *os.File) error {
	unix.Umask(0o022)
	steps := []func() error{}
	switch s.Kind {
	case inNamespaces:
		steps = append(steps, s.enterRoot, s.nameHost)
	case inChroot:
		steps = append(steps, s.changeRoot)
	}
	steps = append(steps, s.linkFiles, s.workingFolder, s.preferToKill, s.limit, s.dropRights)
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if err := dieWithParent(control); err != nil {
		return stage("tie the program to xpkg", err)
	}
	if err := forbidCalls(); err != nil {
		return stage("forbid system calls", err)
	}
	if err := send(reports, report{Ready: true}); err != nil || s.Probe {
		return err
	}
	return stage("execute "+s.Path, unix.Exec(s.Path, s.Args, s.Env))
}

// stage names what failed.
func stage(name string, err error) error {
	if err == nil {
		return nil
	}
	return &stageError{name, err}
}

func (s setup) nameHost() error {
	return stage("set the host name", unix.Sethostname([]byte(s.hostname())))
}

// hostname is as much of the name as a host name may have.
func (s setup) hostname() string { return s.Name[:min(len(s.Name), 63)] }

func (s setup) changeRoot() error {
	if err := errors.Join(os.Chdir(s.Root), unix.Chroot("."), os.Chdir("/")); err != nil {
		return stage("change the root", err)
	}
	// Where the machine forbids devices as well, a program has to do without.
	makeDevices()
	return stage("make /tmp", makeTemp())
}

// linkFiles puts links to the given files where the program looks for them.
func (s setup) linkFiles() error {
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

// workingFolder goes where the program starts, and makes the place as container
// engines do.
func (s setup) workingFolder() error {
	if s.Dir == "" {
		return nil
	}
	return stage("go to the working folder "+s.Dir, errors.Join(os.MkdirAll(s.Dir, 0o755), os.Chdir(s.Dir)))
}

// preferToKill makes the program what the system ends first when it has no memory
// left. Without /proc there is no way to say so.
func (s setup) preferToKill() error {
	const preferred = "500"
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(preferred), 0)
	return nil
}

// limit sets the limits that the kernel keeps to by itself.
func (s setup) limit() error {
	err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	if err == nil && s.Processes > 0 {
		err = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: uint64(s.Processes), Max: uint64(s.Processes)})
	}
	return stage("limit the program", err)
}

// dropRights becomes the user and gives up every capability and every way to get
// one. It is about this thread alone, which is the one that becomes the program.
func (s setup) dropRights() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP+unusedCapabilities; capability++ {
		// Whoever may not do that has none to lose, and one that does not exist is EINVAL.
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

// unusedCapabilities are those that a newer kernel may have.
const unusedCapabilities = 8

// setUser changes the user of this thread. The functions of the standard library
// change that of all threads, which would need the capabilities on each of them.
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

// dieWithParent ends the program when the thread ends that started this process. A
// change of the user forgets that, so it comes after. A parent that is gone already
// has closed the control file.
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
