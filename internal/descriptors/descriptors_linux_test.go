package descriptors

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// plant opens a descriptor as a process inherits it: without the mark.
func plant(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func isMarked(t *testing.T, fd int) bool {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.FD_CLOEXEC != 0
}

func TestCloseOnExecMarksInheritedDescriptors(t *testing.T) {
	for name, mark := range map[string]func(int) error{"close_range": CloseOnExec, "fcntl": markEach} {
		t.Run(name, func(t *testing.T) {
			before, first := plant(t), plant(t)
			high, err := unix.FcntlInt(uintptr(first), unix.F_DUPFD, 900)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Close(high) })
			if err := mark(first); err != nil {
				t.Fatal(err)
			}
			if isMarked(t, before) || !isMarked(t, first) || !isMarked(t, high) {
				t.Errorf("%d: %v, %d: %v, %d: %v", before, isMarked(t, before), first, isMarked(t, first), high, isMarked(t, high))
			}
			for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
				if isMarked(t, int(f.Fd())) {
					t.Errorf("%s is marked", f.Name())
				}
			}
		})
	}
}

func TestEveryDescriptorIsFoundWithoutProc(t *testing.T) {
	all, err := everyDescriptor()
	if err != nil {
		t.Fatal(err)
	}
	if fd := plant(t); len(all) <= fd || all[fd] != fd {
		t.Errorf("%d of %d descriptors", fd, len(all))
	}
}
