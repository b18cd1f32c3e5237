package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// The numbers of system calls that package syscall does not have.
type numbers struct{ memfdCreate, memfdSecret, shmget, semget, msgget, mqOpen, vmsplice, ioSetup uintptr }

var calls = map[string]numbers{
	"amd64": {319, 447, 29, 64, 68, 240, 278, 206},
	"arm64": {279, 447, 194, 190, 186, 180, 75, 0},
}[runtime.GOARCH]

const (
	mapSharedAnonymous = syscall.MAP_SHARED | syscall.MAP_ANON
	mapHuge            = 0x40000
	mib                = 1 << 20
	createPrivate      = 0o1600 // IPC_CREAT, for this user
)

// hide takes an amount of memory, in MiB, that is not in the address space of this process.
func hide(argument string) error {
	word, what, _ := strings.Cut(argument, " ")
	amount, err := strconv.Atoi(word)
	if err != nil {
		return err
	}
	size := amount * mib
	switch what {
	case "page tables":
		return hidePageTables(size)
	case "/dev/shm", "/tmp":
		return os.WriteFile(what+"/hidden", make([]byte, size), 0o600)
	case "unnamed file":
		name := [...]byte{'x', 0}
		fd, err := number(syscall.Syscall(calls.memfdCreate, uintptr(unsafe.Pointer(&name[0])), 0, 0))
		if err != nil {
			return err
		}
		_, err = syscall.Write(fd, make([]byte, size))
		return err
	case "secret memory":
		_, err := number(syscall.Syscall(calls.memfdSecret, 0, 0, 0))
		return err
	case "System V shared memory":
		_, err := number(syscall.Syscall(calls.shmget, 0, uintptr(size), createPrivate))
		return err
	case "System V semaphores":
		_, err := number(syscall.Syscall(calls.semget, 0, 32000, createPrivate))
		return err
	case "System V message queue":
		_, err := number(syscall.Syscall(calls.msgget, 0, createPrivate, 0))
		return err
	case "POSIX message queue":
		name := [...]byte{'x', 0}
		_, err := number(syscall.Syscall6(
			calls.mqOpen, uintptr(unsafe.Pointer(&name[0])), syscall.O_CREAT|syscall.O_RDWR, 0o600, 0, 0, 0,
		))
		return err
	case "shared memory":
		return hideShared(-1, size, mapSharedAnonymous)
	case "/dev/zero":
		fd, err := syscall.Open("/dev/zero", syscall.O_RDWR, 0)
		if err != nil {
			return err
		}
		return hideShared(fd, size, syscall.MAP_SHARED)
	case "huge pages":
		_, err := syscall.Mmap(
			-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|mapHuge,
		)
		if errors.Is(err, syscall.ENOMEM) {
			return err
		}
		return nil
	case "pages in a pipe":
		return hideInPipe(size)
	case "queues of asynchronous I/O":
		var queue uintptr
		_, err := number(syscall.Syscall(calls.ioSetup, 128, uintptr(unsafe.Pointer(&queue)), 0))
		return err
	}
	return fmt.Errorf("there is no %s", what)
}

func number(result, _ uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(result), nil
}

// hidePageTables reads a byte of every 2 MiB, each of which needs a page of page tables and
// no page of memory.
func hidePageTables(size int) error {
	const step, page, noReserve, noHugePage = 2 * mib, 4096, 0x4000, 15
	all, err := syscall.Mmap(-1, 0, size/page*step, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON|noReserve)
	if err != nil {
		return err
	}
	if err := syscall.Madvise(all, noHugePage); err != nil {
		return err
	}
	sum := 0
	for at := 0; at < len(all); at += step {
		sum += int(all[at])
	}
	if sum != 0 {
		return errors.New("the memory is not empty")
	}
	return nil
}

// hideShared writes to a shared mapping, and gives up all of it but a page.
func hideShared(fd, size, flags int) error {
	all, err := syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, flags)
	if err != nil {
		return err
	}
	for at := 0; at < len(all); at += 4096 {
		all[at] = 1
	}
	_, err = number(syscall.Syscall(syscall.SYS_MUNMAP, uintptr(unsafe.Pointer(&all[4096])), uintptr(size-4096), 0))
	return err
}

// hideInPipe puts pages of this process into a pipe.
func hideInPipe(size int) error {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		return err
	}
	data := make([]byte, size)
	vector := syscall.Iovec{Base: &data[0], Len: 4096}
	_, err := number(syscall.Syscall6(calls.vmsplice, uintptr(ends[1]), uintptr(unsafe.Pointer(&vector)), 1, 0, 0, 0))
	return err
}

// exhaust takes as many of something as it can, and returns the number.
func exhaust(what string) int {
	const most = 100_000
	n := 0
	switch what {
	case "inotify instances":
		var all []int
		for ; n < most; n++ {
			fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
			if err != nil {
				break
			}
			all = append(all, fd)
		}
		for _, fd := range all {
			_ = syscall.Close(fd)
		}
	case "epoll watches":
		for range 500 {
			if _, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
				return n
			}
			n++
		}
	case "inotify watches":
		fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
		if err != nil {
			return -1
		}
		defer syscall.Close(fd)
		for ; n < 10_000; n++ {
			name := filepath.Join("/tmp", strconv.Itoa(n))
			if os.Mkdir(name, 0o700) != nil {
				return -1
			}
			if _, err := syscall.InotifyAddWatch(fd, name, syscall.IN_CREATE); err != nil {
				break
			}
		}
	}
	return n
}

// openAll opens as many files as this process may.
func openAll() {
	time.Sleep(time.Nanosecond) // The Go runtime opens files of its own when it first sleeps.
	for {
		if _, err := syscall.Open("/", syscall.O_RDONLY, 0); err != nil {
			return
		}
	}
}

// escapeOOM tries to be spared by the OOM killer.
func escapeOOM() {
	for _, dir := range []string{"/proc/self", "/proc/thread-self", "/proc/1", fmt.Sprintf("/proc/%d", os.Getpid())} {
		for name, values := range map[string][]string{"oom_score_adj": {"-1000", "0", "999"}, "oom_adj": {"-17", "0", "14"}} {
			for _, value := range values {
				_ = os.WriteFile(filepath.Join(dir, name), []byte(value), 0)
			}
		}
	}
}
