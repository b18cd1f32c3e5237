package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/filetree"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/relocation"
)

const (
	// insideUser is the user and group ID of a runtime in a user namespace, the same as
	// in a pod of Crossplane.
	insideUser = 2000
	// outsideUser is the user ID of runtimes on the host if the supervisor is root. It is one of
	// the IDs that systemd allocates to services dynamically, so no account has it.
	outsideUser = 62000
)

// launcher starts runtimes in the strongest isolation that the machine allows.
type launcher struct {
	opts       Options
	initThread *initThread

	mu           sync.Mutex
	capabilities *capabilities // nil until detected.
}

func newLauncher(o Options) *launcher { return &launcher{opts: o, initThread: newInitThread(o)} }

func (s *launcher) close() { s.initThread.close() }

// start starts the process of a run, and returns when init has executed the runtime.
func (s *launcher) start(ctx context.Context, r *run) (*instance, error) {
	g, err := s.detect(ctx)
	if err != nil {
		return nil, err
	}
	private, err := r.private()
	if err != nil {
		return nil, err
	}
	what, attr := s.plan(g, private)
	what.Name, what.Paths = r.spec.Name, r.spec.paths()
	if g.kind == inNamespaces && countsByNamespace() {
		what.Processes = r.spec.processes()
	}
	what.Relocates = g.kind == inNamespaces && canRelocate()
	what.Files = r.program.files().dir
	what.Path, what.Args, what.Env, what.Dir = r.command.path, r.command.args, r.command.env, r.command.dir
	if err := s.furnish(&what, g, r, private); err != nil {
		return nil, err
	}
	withReaper := g.kind != inNamespaces
	if withReaper {
		program := what
		what = sandboxSpec{Kind: asReaper, Reaped: &program}
	}
	child, first, err := s.begin(ctx, what, attr, r.log)
	if err != nil {
		return nil, err
	}
	if what.Relocates {
		listener, err := relocation.Receive(child.ports)
		if err != nil {
			child.terminate(withReaper)
			return nil, fmt.Errorf("relocate its ports: %w", err)
		}
		if listener != nil {
			go relocation.Serve(listener, relocation.Ports{
				Relocated: maps.Clone(r.spec.Ports), IsReserved: r.program.supervisor.reservedFor(r.spec.Name),
			})
		}
	}
	i := newInstance(child, first, g.String(), withReaper)
	if !withReaper {
		i.inMemory = append(i.inMemory, "dev/shm")
	}
	if what.Written > 0 {
		i.inMemory = append(i.inMemory, "")
	}
	return i, nil
}

func (s *launcher) begin(
	ctx context.Context, what sandboxSpec, attr *syscall.SysProcAttr, log io.Writer,
) (*child, report, error) {
	child, err := s.initThread.exec(what, attr, log)
	if child == nil {
		return nil, report{}, err
	}
	var first report
	if err == nil {
		first, err = child.await(ctx, what.Kind == asReaper)
	}
	if err != nil {
		child.terminate(what.Kind == asReaper)
		return nil, report{}, err
	}
	return child, first, nil
}

// plan returns the parts of the sandbox spec and the process attributes that follow from the
// capabilities.
func (s *launcher) plan(g *capabilities, private string) (sandboxSpec, *syscall.SysProcAttr) {
	what := sandboxSpec{Kind: g.kind, Root: filepath.Join(private, "root")}
	attr := &syscall.SysProcAttr{Setsid: true}
	if g.kind == inChroot {
		what.User = outsideUser
	}
	if g.kind != inNamespaces {
		return what, attr
	}
	what.Proc = g.proc == nil
	attr.Pdeathsig = syscall.SIGKILL
	attr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
		syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if uid := os.Geteuid(); uid != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: insideUser, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: insideUser, HostID: os.Getegid(), Size: 1}}
		// Init is not root in its namespace. Without ambient capabilities, it would lose the
		// capabilities that it needs for its preparations when it is executed.
		attr.AmbientCaps = []uintptr{
			unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_SYS_RESOURCE,
		}
		what.UserXattr = true
		return what, attr
	}
	// Init prepares the sandbox as root, and changes to the user at the end.
	what.User = insideUser
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {
		ContainerID: insideUser, HostID: outsideUser, Size: 1,
	}}
	attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = ids, ids, true
	return what, attr
}

// furnish prepares the root file system of a runtime, an overlay if possible and a private copy
// otherwise, and the files that it sees.
func (s *launcher) furnish(what *sandboxSpec, g *capabilities, r *run, private string) error {
	machine := machineFiles()
	if g.kind == inNamespaces {
		what.Binds = machine
		if g.overlay == nil {
			return what.overlay(r.root.Path, private, r.spec.memory())
		}
		return filetree.Copy(r.root.Path, what.Root)
	}
	if err := filetree.Copy(r.root.Path, what.Root); err != nil {
		return err
	}
	if g.kind == inChroot {
		// There are no mounts: the files are copied.
		given := filepath.Join(what.Root, filesMount)
		return errors.Join(copyMachineFiles(what.Root, machine), filetree.Remove(given), r.program.mirrorFiles(given))
	}
	return what.plain(r, private)
}

// canRelocate reports whether the kernel can duplicate the sockets of a runtime, as Linux does since 5.6.
func canRelocate() bool { return isKernel(5, 6) }

// countsByNamespace reports whether the kernel counts the processes of a user per user
// namespace, as Linux does since 5.14. Before that, the limit would apply to all
// processes of the user of this process.
func countsByNamespace() bool { return isKernel(5, 14) }

// isKernel reports whether the kernel is of a version or later.
func isKernel(wantMajor, wantMinor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var major, minor int
	n, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && n == 2 && (major > wantMajor || major == wantMajor && minor >= wantMinor)
}

// canWriteInMemory reports whether an overlay can have its changes in memory. Without root privileges, it needs
// extended attributes of users there, which Linux has since 6.6.
func canWriteInMemory() bool { return os.Geteuid() == 0 || isKernel(6, 6) }

// overlay makes the root an overlay of the unpacked image, and creates its folders. The files that the runtime writes
// take at most the given memory.
func (s *sandboxSpec) overlay(lower, private string, memory int64) error {
	written := filepath.Join(private, "written")
	s.Lower, s.Upper, s.Work = lower, filepath.Join(written, "upper"), filepath.Join(written, "work")
	folders := []string{s.Root, written, s.Upper, s.Work}
	if canWriteInMemory() {
		s.Written, folders = memory, folders[:2]
	}
	for _, dir := range folders {
		if err := filetree.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// plain maps the image paths of a runtime that runs in the root of the host.
func (s *sandboxSpec) plain(r *run, private string) error {
	temp := filepath.Join(private, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	t := translate(r.program.files(), s.Paths)
	s.Env = lastOfEach(slices.Concat([]string{"TMPDIR=" + temp}, t.all(s.Env)))
	s.Args = t.all(s.Args)
	s.Path = filepath.Join(s.Root, s.Path)
	if s.Dir = filepath.Join(s.Root, s.Dir); !filetree.Exists(s.Dir) {
		s.Dir = s.Root
	}
	s.Paths, s.Files, s.Root = nil, "", ""
	return nil
}

// authorities are the paths at which Linux distributions keep their trusted CA certificates. Common
// TLS libraries look for certificates at the same paths.
var authorities = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Alpine
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",                            // SUSE
	"/etc/pki/tls/certs/ca-bundle.crt",                  // older RHEL
	"/etc/ssl/cert.pem",                                 // older Alpine
}

// machineFiles returns the host files that are visible to runtimes: the configuration of the name
// resolution and the trusted CA certificates. It omits missing files.
func machineFiles() []bind {
	var found []bind
	add := func(from, to string) bool {
		real, err := filepath.EvalSymlinks(from)
		if err != nil {
			return false
		}
		found = append(found, bind{From: real, To: to})
		return true
	}
	add("/etc/resolv.conf", "/etc/resolv.conf")
	add("/etc/hosts", "/etc/hosts")
	for _, path := range authorities {
		if add(path, authorities[0]) {
			break
		}
	}
	return found
}

// copyMachineFiles copies host files into a root. It follows no link in the image that leads out of
// the root.
func copyMachineFiles(root string, machine []bind) error {
	inside, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer inside.Close()
	for _, b := range machine {
		data, err := os.ReadFile(b.From)
		if err != nil {
			return err
		}
		name := b.To[1:]
		if err := mkdirAll(inside, path.Dir(name)); err != nil {
			return err
		}
		if err := ignoreAbsent(inside.Remove(name)); err != nil {
			return err
		}
		if err := errors.Join(inside.WriteFile(name, data, 0o444), inside.Chmod(name, 0o444)); err != nil {
			return err
		}
	}
	return nil
}

// mkdirAll creates a folder and its missing parents, which every user can read regardless of
// the umask of this process.
func mkdirAll(inside *os.Root, name string) error {
	if _, err := inside.Stat(name); err == nil || name == "." {
		return nil
	}
	if err := mkdirAll(inside, path.Dir(name)); err != nil {
		return err
	}
	return errors.Join(inside.Mkdir(name, 0o755), inside.Chmod(name, 0o755))
}
