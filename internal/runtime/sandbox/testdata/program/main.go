// Command program is the package runtime of the tests. It acts on requests over HTTP, and
// reports what it can see and do.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// kept is memory that is in use.
var kept [][]byte

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case script:
			fmt.Println(keepProgram())
			os.Exit(1)
		case "fail":
			fmt.Println("failing")
			os.Exit(3)
		case "open":
			openAll()
			time.Sleep(time.Hour)
		case "sleep":
			signal.Ignore(syscall.SIGTERM)
			time.Sleep(time.Hour)
		case "talk":
			for i := 0; ; i++ {
				fmt.Printf("line %d %s\n", i, strings.Repeat("x", 80))
				time.Sleep(time.Millisecond)
			}
		}
	}
	stubborn := os.Getenv("STUBBORN") != ""
	if stubborn {
		signal.Ignore(syscall.SIGTERM)
	} else {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		go func() {
			<-stop
			fmt.Println("stopping in order")
			os.Exit(0)
		}()
	}
	debug.SetGCPercent(-1)
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("serving")
	fmt.Println(http.Serve(listener, http.HandlerFunc(serve)))
}

func serve(w http.ResponseWriter, r *http.Request) {
	argument := r.URL.Query().Get("a")
	switch r.URL.Path {
	case "/descriptors":
		answer(w, descriptors(), nil)
	case "/see":
		_ = json.NewEncoder(w).Encode(see())
	case "/read":
		data, err := os.ReadFile(argument)
		answer(w, string(data), err)
	case "/list":
		entries, err := os.ReadDir(argument)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		answer(w, strings.Join(names, " "), err)
	case "/write":
		answer(w, "", os.WriteFile(argument, []byte("written"), 0o600))
	case "/dial":
		connection, err := net.Dial("unix", argument)
		if err == nil {
			err = connection.Close()
		}
		answer(w, "", err)
	case "/listen":
		_, err := net.Listen("unix", argument)
		answer(w, "", err)
	case "/listen-tcp":
		_, err := net.Listen("tcp", argument)
		answer(w, "", err)
	case "/listen-interrupted":
		answer(w, "", listenInterrupted(argument))
	case "/mkdir":
		answer(w, "", os.Mkdir(argument, 0o700))
	case "/rename":
		from, to, _ := strings.Cut(argument, " ")
		answer(w, "", os.Rename(from, to))
	case "/lock":
		answer(w, "", lock(argument))
	case "/remove":
		answer(w, "", os.Remove(argument))
	case "/eat":
		mib, _ := strconv.Atoi(argument)
		for range mib {
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = 1
			}
			kept = append(kept, block)
		}
	case "/spawn":
		cmd := exec.Command("/proc/self/exe", "sleep")
		if argument != "" {
			cmd = exec.Command(argument, "sleep")
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		answer(w, "", cmd.Start())
	case "/spawn-opener":
		answer(w, "", exec.Command(cmp.Or(argument, "/proc/self/exe"), "open").Start())
	case "/hide":
		answer(w, "", hide(argument))
	case "/exhaust":
		answer(w, strconv.Itoa(exhaust(argument)), nil)
	case "/escape-oom":
		escapeOOM()
	case "/call":
		answer(w, "", call(argument))
	case "/socket":
		answer(w, "", socket(argument))
	case "/exit":
		code, _ := strconv.Atoi(argument)
		os.Exit(code)
	case "/overwrite":
		answer(w, "", overwrite(os.Getenv(keptProgram)))
	case "/kill":
		pid, _ := strconv.Atoi(argument)
		answer(w, "", syscall.Kill(pid, syscall.SIGKILL))
	}
}

// lock makes folders and a file without permissions.
func lock(dir string) error {
	inner := filepath.Join(dir, "inner")
	file := filepath.Join(inner, "none")
	return errors.Join(
		os.MkdirAll(inner, 0o700), os.WriteFile(file, nil, 0o600), os.Chmod(file, 0), os.Chmod(inner, 0), os.Chmod(dir, 0),
	)
}

func answer(w http.ResponseWriter, text string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	fmt.Fprint(w, text)
}

// call tries system calls that a runtime may not make.
func call(name string) error {
	var errno syscall.Errno
	switch name {
	case "unshare":
		return syscall.Unshare(syscall.CLONE_NEWUSER)
	case "clone":
		cmd := exec.Command("/proc/self/exe", "fail")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
		return cmd.Start()
	case "mount":
		return syscall.Mount("tmpfs", "/tmp", "tmpfs", 0, "")
	case "chroot":
		return syscall.Chroot("/tmp")
	case "setuid":
		return syscall.Setuid(0)
	case "bpf":
		_, _, errno = syscall.RawSyscall(321, 0, 0, 0)
	case "pdeathsig":
		_, _, errno = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, 0, 0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// socket makes the socket with a family, a type and a protocol, and fails with the number
// of the error.
func socket(argument string) error {
	var family, kind, protocol int
	if _, err := fmt.Sscan(argument, &family, &kind, &protocol); err != nil {
		return err
	}
	fd, err := syscall.Socket(family, kind, protocol)
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errors.New(strconv.Itoa(int(errno)))
	}
	return syscall.Close(fd)
}

// descriptors returns the device and the inode behind each open descriptor. It does not
// need /proc.
func descriptors() string {
	var all []string
	for fd := range 4096 {
		var stat syscall.Stat_t
		if syscall.Fstat(fd, &stat) == nil {
			all = append(all, fmt.Sprintf("%d:%d", stat.Dev, stat.Ino))
		}
	}
	return strings.Join(all, " ")
}

// sight is the view of the runtime of itself and of the machine.
type sight struct {
	Args      []string
	Env       []string
	UID, GID  int
	Groups    []int
	PID       int
	Dir       string
	Host      string
	Processes []string
	Status    map[string]string
	Limits    map[string]uint64
	// Nice is the nice value of the process.
	Nice int
}

func see() sight {
	s := sight{
		Args: os.Args, Env: os.Environ(), UID: os.Getuid(), GID: os.Getgid(), PID: os.Getpid(), Status: map[string]string{},
		Limits: map[string]uint64{},
	}
	s.Groups, _ = os.Getgroups()
	s.Dir, _ = os.Getwd()
	s.Host, _ = os.Hostname()
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			s.Processes = append(s.Processes, e.Name())
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			s.Status[name] = strings.TrimSpace(value)
		}
	}
	for name, which := range map[string]int{
		"core": syscall.RLIMIT_CORE, "processes": 6, "open files": syscall.RLIMIT_NOFILE, "locked memory": 8,
		"message queues": 12, "pending signals": 11,
		"real-time priority": 14, "nice": 13,
	} {
		var limit syscall.Rlimit
		if syscall.Getrlimit(which, &limit) == nil {
			s.Limits[name] = limit.Max
		}
	}
	if priority, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
		s.Nice = 20 - priority // as the system call encodes it
	}
	return s
}

// listenInterrupted listens at an address many times, in a thread that is sent signals meanwhile.
func listenInterrupted(address string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, done, ended := syscall.Gettid(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				_ = syscall.Tgkill(os.Getpid(), thread, syscall.SIGURG)
			}
		}
	}()
	defer func() { close(done); <-ended }()
	for range 2000 {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}
