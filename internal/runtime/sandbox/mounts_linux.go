package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The stages whose failure a supervisor can work around.
const (
	stageOverlay = "mount an overlay"
	stageProc    = "mount /proc"
)

const (
	// oldRoot is the path of the host's root while the root of a runtime is prepared.
	oldRoot = "/.xpkg-machine"
	// sharedMemory is the size of /dev/shm, as in container engines.
	sharedMemory = "64m"
)

// devices are the devices of a runtime, and the devices of the host that stand behind them. Behind
// /dev/zero is /dev/full, which also reads as zeros: a mapping of the real /dev/zero can be shared
// memory that belongs to no process.
var devices = []struct {
	name, is string
	minor    uint32
}{
	{"null", "null", 3}, {"zero", "full", 7}, {"full", "full", 7}, {"random", "random", 8}, {"urandom", "urandom", 9},
}

// enterRoot mounts the root of the runtime, makes it the root of this mount namespace, and mounts
// /proc, /dev and the files in it.
func (s sandboxSpec) enterRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return stage("separate the mounts", err)
	}
	if err := s.mountRoot(); err != nil {
		return stage(stageOverlay, err)
	}
	if err := s.pivot(); err != nil {
		return stage("change the root", err)
	}
	if err := s.mountProc(); err != nil {
		return stage(stageProc, err)
	}
	if err := mountDev(); err != nil {
		return stage("mount /dev", err)
	}
	if err := makeTemp(); err != nil {
		return stage("make /tmp", err)
	}
	if err := s.bindFiles(); err != nil {
		return stage("show files of this machine", err)
	}
	return stage("leave the root of this machine", errors.Join(unix.Unmount(oldRoot, unix.MNT_DETACH), os.Remove(oldRoot)))
}

func (s sandboxSpec) mountRoot() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if s.Lower == "" {
		if err := unix.Mount(s.Root, s.Root, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		return remount(s.Root, flags)
	}
	if s.Written > 0 {
		if err := s.mountWritten(); err != nil {
			return err
		}
	}
	options := "lowerdir=" + escape(s.Lower) + ",upperdir=" + escape(s.Upper) + ",workdir=" + escape(s.Work)
	if s.UserXattr {
		options += ",userxattr"
	}
	return unix.Mount("overlay", s.Root, "overlay", flags, options)
}

// mountWritten mounts the file system in memory for the files that the runtime writes: it can fill its memory, and not
// the disk of the control plane, which could not save anything any more.
func (s sandboxSpec) mountWritten() error {
	const bytesPerFile = 16 << 10
	options := fmt.Sprintf("mode=755,size=%d,nr_inodes=%d", s.Written, s.Written/bytesPerFile)
	if err := unix.Mount("tmpfs", filepath.Dir(s.Upper), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(s.Upper, 0o755), os.Mkdir(s.Work, 0o755))
}

// escape escapes a path for the mount options of an overlay.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, ",", `\,`, ":", `\:`).Replace(path)
}

func (s sandboxSpec) pivot() error {
	old := filepath.Join(s.Root, oldRoot)
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	return errors.Join(unix.PivotRoot(s.Root, old), os.Chdir("/"))
}

// mountProc mounts a read-only /proc, because a runtime could lower its OOM score in a writable
// one.
func (s sandboxSpec) mountProc() error {
	if err := makeFolder("/proc"); err != nil || !s.Proc {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// mountDev mounts a minimal, read-only /dev.
func mountDev() error {
	if err := makeFolder("/dev"); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return err
	}
	for _, d := range devices {
		if err := bindFile(oldRoot+"/dev/"+d.is, "/dev/"+d.name, 0); err != nil {
			return err
		}
	}
	if err := errors.Join(linkStreams(), os.Mkdir("/dev/shm", 0o755)); err != nil {
		return err
	}
	if err := remount("/dev", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NOEXEC); err != nil {
		return err
	}
	return unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777,size="+
		sharedMemory)
}

func linkStreams() error {
	return errors.Join(
		os.Symlink("/proc/self/fd", "/dev/fd"), os.Symlink("/proc/self/fd/0", "/dev/stdin"),
		os.Symlink("/proc/self/fd/1", "/dev/stdout"), os.Symlink("/proc/self/fd/2", "/dev/stderr"),
	)
}

// makeDevices creates devices without mounts.
func makeDevices() {
	const major = 1
	_ = makeFolder("/dev")
	for _, d := range devices {
		at := "/dev/" + d.name
		if unix.Mknod(at, unix.S_IFCHR|0o666, int(unix.Mkdev(major, d.minor))) == nil {
			_ = os.Chmod(at, 0o666) // Mknod applies the umask.
		}
	}
}

// makeTemp creates the folder for temporary files, which many images lack.
func makeTemp() error {
	return errors.Join(makeFolder("/tmp"), os.Chmod("/tmp", 0o777|os.ModeSticky))
}

// bindFiles mounts host files and the given files.
func (s sandboxSpec) bindFiles() error {
	for _, b := range s.Binds {
		if err := bindFile(oldRoot+b.From, b.To, unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
			return err
		}
	}
	if s.Files == "" {
		return nil
	}
	// The mount hides a folder of the image at this path, because a folder of an overlay cannot
	// always be removed.
	if err := makeFolder(filesMount); err != nil {
		return err
	}
	if err := unix.Mount(oldRoot+s.Files, filesMount, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return remount(filesMount, unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)
}

// bindFile mounts a file at another path. It creates the mount point, and replaces anything but a
// regular file there.
func bindFile(from, to string, flags uintptr) error {
	if err := os.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	if info, err := os.Lstat(to); err == nil && !info.Mode().IsRegular() {
		// The target of a link may not exist.
		if err := os.RemoveAll(to); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), unix.Mount(from, to, "", unix.MS_BIND, "")); err != nil || flags == 0 {
		return err
	}
	return remount(to, flags)
}

// remount changes the flags of a mount. In a user namespace it must keep the existing
// ones.
func remount(at string, flags uintptr) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(at, &stat); err != nil {
		return err
	}
	for has, keep := range map[int64]uintptr{
		unix.ST_RDONLY: unix.MS_RDONLY, unix.ST_NOSUID: unix.MS_NOSUID, unix.ST_NODEV: unix.MS_NODEV,
		unix.ST_NOEXEC:  unix.MS_NOEXEC,
		unix.ST_NOATIME: unix.MS_NOATIME, unix.ST_NODIRATIME: unix.MS_NODIRATIME, unix.ST_RELATIME: unix.MS_RELATIME,
	} {
		if int64(stat.Flags)&has != 0 {
			flags |= keep
		}
	}
	return unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
}

// makeFolder creates a folder, and replaces anything else at its path.
func makeFolder(at string) error {
	if info, err := os.Lstat(at); err == nil && !info.IsDir() {
		if err := os.Remove(at); err != nil {
			return err
		}
	}
	return os.MkdirAll(at, 0o755)
}
