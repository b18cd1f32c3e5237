package sandbox

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// initProgram provides the file from which init is executed, which is never the xpkg executable
// itself: an image can make init execute /proc/self/exe, as the interpreter of a script. The
// runtime can then open the file of init for writing if it runs as the owner of the file
// (CVE-2019-5736).
//
// All init processes share one sealed copy in memory. If the machine forbids executable files in
// memory, each init process has a copy of its own, which is unlinked before it is executed.
type initProgram struct {
	source string
	// folder is the folder of the copies on disk.
	folder string
	log    *slog.Logger

	mu     sync.Mutex
	sealed *os.File
	// unsealable reports that the machine forbids executable files in memory.
	unsealable bool
}

func newInitProgram(o Options) *initProgram {
	return &initProgram{source: o.Executable, folder: filepath.Join(o.Dir, programsFolder), log: o.Log}
}

// open returns the file for one init process. The caller must close it.
func (p *initProgram) open() (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sealed == nil && !p.unsealable {
		sealed, err := p.copyToMemory()
		if err != nil {
			p.unsealable = true
			p.log.Warn("each start of a package runtime copies the xpkg program: this machine forbids executable files in memory",
				"reason", err, "what to do", "run `sysctl vm.memfd_noexec=1`, and start xpkg again")
		}
		p.sealed = sealed
	}
	if p.sealed == nil {
		return p.copyToDisk()
	}
	return duplicate(p.sealed)
}

// discard closes the shared copy. The kernel does not execute a copy that a runtime holds
// open for writing, although the runtime cannot change it.
func (p *initProgram) discard() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := closeAll(p.sealed)
	p.sealed = nil
	return err
}

func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// copyToMemory returns a copy in memory that no process can change.
func (p *initProgram) copyToMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("xpkg", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		// Linux before 6.3 does not know MFD_EXEC.
		fd, err = unix.MemfdCreate("xpkg", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	sealed := os.NewFile(uintptr(fd), "xpkg")
	if err := p.copyTo(sealed); err != nil {
		return nil, errors.Join(err, sealed.Close())
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(sealed.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), sealed.Close())
	}
	return sealed, nil
}

// copyToDisk returns a copy on disk that is already unlinked.
func (p *initProgram) copyToDisk() (*os.File, error) {
	// A child process that is started now would inherit the writable descriptor, and the kernel
	// does not execute a file that is open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	writable, err := os.CreateTemp(p.folder, ".init-")
	if err != nil {
		return nil, err
	}
	copied, err := os.Open(writable.Name())
	err = errors.Join(err, os.Remove(writable.Name()), p.copyTo(writable), writable.Chmod(0o500), writable.Close())
	if err != nil {
		return nil, errors.Join(err, closeAll(copied))
	}
	return copied, nil
}

func (p *initProgram) copyTo(to io.Writer) error {
	from, err := os.Open(p.source)
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("copy the xpkg program: %w", err)
	}
	return nil
}
