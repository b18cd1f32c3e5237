package sandbox

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/relocation"
)

// architectures are the supported architectures, with the kernel's audit constants.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// forbidden are system calls that no runtime needs and that kernel exploits commonly use.
// They fail with EPERM.
var forbidden = []uintptr{
	// Mounts, roots and namespaces.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
	unix.SYS_UNSHARE,
	// Other processes, keys, and files without regard to the permissions of folders.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES, unix.SYS_FANOTIFY_INIT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	// Large parts of the kernel that are seldom needed and often broken.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER,
	// The machine itself.
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_QUOTACTL,
}

// absent are system calls that fail with ENOSYS, as on a kernel without them. Programs have an
// alternative for such kernels.
var absent = []uintptr{
	// A filter cannot read the flags of clone3, which are in memory. Without clone3, programs use
	// clone.
	unix.SYS_CLONE3,
	// Memory that belongs to no process, so that no limit counts it: files without a name, System V
	// IPC, message queues, pages of a process that stay in a pipe, and queues of asynchronous I/O,
	// whose number is limited for the whole machine. Without namespaces, IPC also reaches the other
	// processes of the machine. Programs use files in /dev/shm instead.
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_VMSPLICE, unix.SYS_IO_SETUP,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
	unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// sockets are the sockets that a runtime may create. Most other families are seldom used, and
// creating a socket of a family loads its kernel module.
var sockets = []struct {
	family uint32
	// types and protocols are the allowed ones; nil means all.
	types, protocols []uint32
}{
	// The processes of a runtime, such as Terraform and its providers.
	{family: unix.AF_UNIX},
	// The network. Go serves with MPTCP by default. ICMP is for ping.
	{unix.AF_INET, []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}, []uint32{
		0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_MPTCP,
	}},
	{unix.AF_INET6, []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}, []uint32{
		0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6, unix.IPPROTO_MPTCP,
	}},
	// Go and C libraries list the addresses of the machine before they resolve a name.
	{unix.AF_NETLINK, nil, []uint32{unix.NETLINK_ROUTE}},
}

// newNamespaces are the flags of clone that create namespaces.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Offsets of the number, the architecture and the first argument of a system call in the
// input of a filter (seccomp(2), struct seccomp_data). Both architectures are
// little-endian.
const (
	callNumber   = 0
	architecture = 4
	firstArg     = 16
	argSize      = 8
	// x32 marks the system calls of the x32 ABI on amd64.
	x32 = 0x40000000
)

// instructions are a part of a filter (bpf(4), "Filter machine").
type instructions []unix.SockFilter

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// loadArg returns the instruction that loads the lower half of an argument. The first argument has
// the number 0.
func loadArg(n uint32) unix.SockFilter { return load(firstArg + n*argSize) }

func mask(bits uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: bits}
}

// test returns the instruction that compares the loaded value, and skips yes instructions if the
// comparison is true, and no instructions if it is false.
func test(how uint16, value uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | how, K: value, Jt: uint8(yes), Jf: uint8(no)}
}

func end(with uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with}
}

func allow() unix.SockFilter { return end(unix.SECCOMP_RET_ALLOW) }

func fail(errno unix.Errno) unix.SockFilter { return end(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// when returns instructions that execute then if the loaded value is equal to value.
func when(value uint32, then ...unix.SockFilter) instructions {
	return append(instructions{test(unix.BPF_JEQ, value, 0, len(then))}, then...)
}

// unlessIn returns instructions that execute otherwise if the loaded value is none of values.
func unlessIn(values []uint32, otherwise ...unix.SockFilter) instructions {
	var all instructions
	for i, value := range values {
		all = append(all, test(unix.BPF_JEQ, value, len(values)-1-i+len(otherwise), 0))
	}
	return append(all, otherwise...)
}

// filter returns the BPF program that allows or denies each system call. More are parts that precede the end.
func filter(arch uint32, more ...instructions) instructions {
	program := instructions{
		load(architecture), test(unix.BPF_JEQ, arch, 1, 0), end(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber), test(unix.BPF_JGE, x32, 0, 1), fail(unix.EPERM),
	}
	for _, call := range forbidden {
		program = append(program, when(uint32(call), fail(unix.EPERM))...)
	}
	for _, call := range absent {
		program = append(program, when(uint32(call), fail(unix.ENOSYS))...)
	}
	return slices.Concat(program,
		when(unix.SYS_CLONE, loadArg(0), test(unix.BPF_JSET, newNamespaces, 0, 1), fail(unix.EPERM), allow()),
		// The parent-death signal cannot be switched off. The call reports success to a
		// runtime that sets it for its own children: they exit with the runtime in any
		// case.
		when(unix.SYS_PRCTL, loadArg(0), test(unix.BPF_JEQ, unix.PR_SET_PDEATHSIG, 0, 1), fail(0), allow()),
		when(unix.SYS_MMAP, mapFilter()...),
		when(unix.SYS_SOCKET, socketFilter()...),
		when(unix.SYS_SOCKETPAIR, socketFilter()...),
		slices.Concat(more...),
		instructions{allow()},
	)
}

// mapFilter returns the part of the filter for mmap, whose fourth argument has the flags. It denies
// shared memory without a file, which stays allocated after all processes have unmapped a part of
// it, and huge pages, which are scarce.
func mapFilter() instructions {
	const withoutFile = unix.MAP_SHARED | unix.MAP_ANONYMOUS
	return instructions{
		loadArg(3), test(unix.BPF_JSET, unix.MAP_HUGETLB, 0, 1), fail(unix.ENOMEM),
		mask(withoutFile), test(unix.BPF_JEQ, withoutFile, 0, 1), fail(unix.EPERM), allow(),
	}
}

// socketFilter returns the part of the filter for calls with the arguments family, type and
// protocol.
func socketFilter() instructions {
	// typeBits masks the type without its flags.
	const typeBits = 0xf
	all := instructions{loadArg(0)}
	for _, s := range sockets {
		var then instructions
		if s.types != nil {
			then = slices.Concat(instructions{loadArg(1), mask(typeBits)}, unlessIn(s.types, fail(unix.ESOCKTNOSUPPORT)))
		}
		if s.protocols != nil {
			then = slices.Concat(then, instructions{loadArg(2)}, unlessIn(s.protocols, fail(unix.EPROTONOSUPPORT)))
		}
		all = append(all, when(s.family, append(then, allow())...)...)
	}
	return append(all, fail(unix.EAFNOSUPPORT))
}

// bindFilter returns the part of the filter for bind, which leaves each call that may name a port to the supervisor.
// The third argument is the length of the address.
func bindFilter() instructions {
	return instructions{
		loadArg(2), test(unix.BPF_JGE, unix.SizeofSockaddrInet4, 0, 1), end(unix.SECCOMP_RET_USER_NOTIF), allow(),
	}
}

// forbidCalls installs the filter for this thread, and thereby for the runtime that it
// executes. It sends the descriptor of the filter to a supervisor that relocates ports.
// A kernel without seccomp is not an error.
func forbidCalls(supervisor *os.File) error {
	arch, known := architectures[runtime.GOARCH]
	if !known {
		return nil
	}
	// For a missing filter, a kernel with seccomp returns EFAULT, and a kernel without seccomp
	// returns EINVAL. For an invalid filter, every kernel returns EINVAL, so this check comes
	// first.
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0, 0, 0); errors.Is(err, unix.EINVAL) {
		return nil
	}
	if supervisor != nil {
		program := filter(arch, when(unix.SYS_BIND, bindFilter()...))
		// A signal must not interrupt a call after the supervisor has bound its socket: the repeated call would fail.
		listener, err := install(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
		if errors.Is(err, unix.EINVAL) { // before Linux 5.19
			listener, err = install(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
		}
		// If a filter of this process has a descriptor already, as in some containers, the ports are not relocated.
		if !errors.Is(err, unix.EBUSY) {
			return errors.Join(err, relocation.Send(supervisor, listener))
		}
	}
	_, err := install(filter(arch), 0)
	return err
}

// install installs a filter for this thread, and returns its descriptor if the flags ask for one.
func install(program instructions, flags uintptr) (int, error) {
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP,
		unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&unix.SockFprog{
			Len: uint16(len(program)), Filter: &program[0],
		})))
	if errno != 0 {
		return 0, errno
	}
	return int(listener), nil
}

// keepApart prevents this thread, and thereby the runtime that it executes, from sending signals to
// other processes of the machine, from connecting to their abstract Unix sockets, which belong to
// the shared network, and from reading their memory and environment in /proc. A kernel without
// these features, such as Linux before 6.12, or without Landlock is not an error.
func keepApart() error {
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	ruleset, _, errno := unix.Syscall(
		unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0,
	)
	switch errno {
	case 0:
	case unix.ENOSYS, unix.EOPNOTSUPP, unix.E2BIG, unix.EPERM:
		return nil
	default:
		return errno
	}
	_, _, errno = unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0)
	err := unix.Close(int(ruleset))
	if errno != 0 {
		err = errors.Join(errno, err)
	}
	return err
}
