package relocation

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification and response are struct seccomp_notif and struct seccomp_notif_resp.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		call       int32
		arch       uint32
		pointer    uint64
		args       [6]uint64
	}
	response struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

// longestAddress is the length of struct sockaddr_in6.
const longestAddress = unix.SizeofSockaddrInet6

// Send sends the descriptor of a filter to the supervisor, and closes it.
func Send(to *os.File, listener int) error {
	return errors.Join(unix.Sendmsg(int(to.Fd()), []byte{0}, unix.UnixRights(listener), nil, 0), unix.Close(listener))
}

// Receive returns the descriptor that init has sent before it executed the runtime. It returns nil if there is none,
// because another filter of this process does not allow it.
func Receive(from *os.File) (*os.File, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(from.Fd()), make([]byte, 1), control, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		if errors.Is(err, unix.EAGAIN) {
			return nil, nil
		}
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("%d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("%d descriptors: %w", len(fds), err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, errors.Join(err, unix.Close(fds[0]))
	}
	return os.NewFile(uintptr(fds[0]), "seccomp"), nil
}

// Ports are the TCP ports of a runtime.
type Ports struct {
	// Relocated maps the ports that the runtime names to those that it binds.
	Relocated map[int]int
	// IsReserved reports whether a port belongs to another runtime, which may be starting.
	IsReserved func(port int) bool
}

// Serve answers the bind calls of a runtime until all of its processes have exited, and closes the descriptor.
func Serve(listener *os.File, ports Ports) {
	defer listener.Close()
	raw, err := listener.SyscallConn()
	if err != nil {
		return
	}
	// The function is called again when the descriptor is ready, and ends when it returns true.
	_ = raw.Read(func(fd uintptr) bool {
		for {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if _, err := unix.Poll(poll, 0); err != nil && !errors.Is(err, unix.EINTR) {
				return true
			}
			if poll[0].Revents&unix.POLLIN == 0 {
				return poll[0].Revents != 0
			}
			answer(fd, ports)
		}
	})
}

// answer answers one call. A call that names no relocated port continues in the kernel. A call whose thread has exited
// needs no answer.
func answer(fd uintptr, ports Ports) {
	var n notification
	// An interrupted request is not repeated: it would wait if the call ended in the meantime.
	if _, _, errno := unix.Syscall(
		unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)),
	); errno != 0 {
		return
	}
	r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if isBound, err := n.bind(fd, ports); isBound {
		r.flags, r.errno = 0, 0
		if errno := unix.Errno(0); errors.As(err, &errno) {
			r.errno = -int32(errno)
		}
	}
	_ = ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

func ioctl(fd, request uintptr, argument unsafe.Pointer) error {
	for {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument)); errno != unix.EINTR {
			return errnoOrNil(errno)
		}
	}
}

func errnoOrNil(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// bind binds the socket of a call to the port for the one that the call names, and fails for a port that belongs to
// another runtime. It reports false if the call names no such port, or if the supervisor cannot bind the socket. The
// runtime cannot change the address that is bound, because it is copied first. A runtime that changes the address of
// another call after this check can get a reserved port.
func (n *notification) bind(listener uintptr, ports Ports) (isBound bool, err error) {
	address := make([]byte, min(n.args[2], longestAddress))
	local := []unix.Iovec{{Base: &address[0], Len: uint64(len(address))}}
	remote := []unix.RemoteIovec{{Base: uintptr(n.args[1]), Len: len(address)}}
	if read, err := unix.ProcessVMReadv(int(n.pid), local, remote, 0); err != nil || read != len(address) {
		return false, err
	}
	family, port := binary.NativeEndian.Uint16(address), binary.BigEndian.Uint16(address[2:])
	to, isRelocated := ports.Relocated[int(port)]
	isReserved := !isRelocated && ports.IsReserved(int(port))
	if !isRelocated && !isReserved ||
		family != unix.AF_INET && (family != unix.AF_INET6 || len(address) < longestAddress) {
		return false, nil
	}
	socket, err := n.socket()
	if err != nil {
		return false, err
	}
	defer unix.Close(socket)
	// The thread may have exited, and another process may have its number.
	if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)); err != nil {
		return false, err
	}
	if kind, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_STREAM {
		return false, err
	}
	if isReserved {
		return true, unix.EADDRINUSE
	}
	binary.BigEndian.PutUint16(address[2:], uint16(to))
	_, _, errno := unix.Syscall(
		unix.SYS_BIND, uintptr(socket), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)),
	)
	return true, errnoOrNil(errno)
}

// socket returns a duplicate of the socket of a call.
func (n *notification) socket() (int, error) {
	process, err := processOf(int(n.pid))
	if err != nil {
		return 0, err
	}
	pidfd, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, int(int32(n.args[0])), 0)
}

// processOf returns the process of a thread.
func processOf(thread int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0, err
	}
	var process int
	_, rest, _ := strings.Cut(string(status), "\nTgid:")
	_, err = fmt.Sscan(rest, &process)
	return process, err
}
