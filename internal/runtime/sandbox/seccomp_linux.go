package sandbox

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// architectures are the supported architectures, with the kernel's audit constants.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// forbidden are system calls that no runtime needs and that kernel exploits commonly use.
// They fail with EPERM.
var forbidden = []uintptr{
	// Mounts, roots and namespaces.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE,
	// Other processes, keys, and files behind the back of folders.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	// Large parts of the kernel that are seldom needed and often broken.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	// The machine itself.
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_QUOTACTL,
}

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Offsets of the number, the architecture and the first argument of a system call in the
// input of a filter (seccomp(2), struct seccomp_data). Both architectures are
// little-endian.
const (
	callNumber   = 0
	architecture = 4
	firstArg     = 16
	// x32 marks the system calls of the x32 ABI on amd64.
	x32 = 0x40000000
)

// filter returns the BPF program that allows or denies each system call.
func filter(arch uint32) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	end := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	test := func(how uint16, value uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | how, K: value, Jt: yes, Jf: no}
	}
	fail := func(errno unix.Errno) unix.SockFilter { return end(unix.SECCOMP_RET_ERRNO | uint32(errno)) }
	program := []unix.SockFilter{
		load(architecture), test(unix.BPF_JEQ, arch, 1, 0), end(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber), test(unix.BPF_JGE, x32, 0, 1), fail(unix.EPERM),
	}
	for _, call := range forbidden {
		program = append(program, test(unix.BPF_JEQ, uint32(call), 0, 1), fail(unix.EPERM))
	}
	return append(program,
		// The flags of clone3 are out of reach of a filter; without it clone is used.
		test(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), fail(unix.ENOSYS),
		test(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4), load(firstArg), test(unix.BPF_JSET, newNamespaces, 0, 1), fail(unix.EPERM), end(unix.SECCOMP_RET_ALLOW),
		// The parent-death signal cannot be switched off. The call reports success to a
		// runtime that sets it for its own children: they exit with the runtime in any
		// case.
		test(unix.BPF_JEQ, unix.SYS_PRCTL, 0, 3), load(firstArg), test(unix.BPF_JEQ, unix.PR_SET_PDEATHSIG, 0, 1), fail(0),
		end(unix.SECCOMP_RET_ALLOW),
	)
}

// forbidCalls installs the filter for this thread, and thereby for the runtime that it
// executes. A kernel without seccomp is not an error: the filter is defense in depth.
func forbidCalls() error {
	arch, known := architectures[runtime.GOARCH]
	if !known {
		return nil
	}
	program := filter(arch)
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&unix.SockFprog{
		Len: uint16(len(program)), Filter: &program[0],
	})), 0, 0)
	return ignore(err, unix.EINVAL)
}
