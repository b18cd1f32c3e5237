// Package datadir is the data directory of a control plane: its layout, the lock
// that keeps two control planes apart, and the port that it remembers.
package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/xpkg-dev/xpkg/controlplane/internal/report"
)

// LockFile is the name of the file that a running control plane holds locked. It
// contains the process id of the holder.
const LockFile = "controlplane.lock"

// Dir is a data directory that this process holds.
type Dir struct {
	path string
	lock *os.File
}

// Open makes the directory where it is missing, readable for its owner only, and
// takes its lock. It fails with the code DataDirInUse, naming the process, when
// another control plane holds it.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, report.Fail(report.DataDirUnusable, err, "cannot find the data directory")
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, report.Fail(report.DataDirUnusable, err, "cannot create the data directory")
	}
	if err := checkPrivate(path); err != nil {
		return nil, report.Fail(report.DataDirUnusable, err, "data directory %s is not safe", path)
	}
	lock, err := lockFile(filepath.Join(path, LockFile))
	if errors.Is(err, errLocked) {
		return nil, report.Fail(
			report.DataDirInUse, nil, "data directory %s is used by another control plane, process %s", path, holder(path),
		)
	}
	if err != nil {
		return nil, report.Fail(report.DataDirUnusable, err, "cannot lock the data directory")
	}
	d := &Dir{path: path, lock: lock}
	if err := errors.Join(writePID(lock), d.makeFolders()); err != nil {
		return nil, errors.Join(report.Fail(report.DataDirUnusable, err, "cannot write to the data directory"), d.Close())
	}
	return d, nil
}

// checkPrivate refuses a directory that another user can change: it holds the keys of
// the control plane.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d, and this is user %d", stat.Uid, os.Geteuid())
	}
	if info.Mode()&0o022 != 0 {
		return fmt.Errorf("other users can write to it: run chmod go-w %s", path)
	}
	return nil
}

// Close releases the lock. The file stays: after its removal, two processes could lock two files of the same name.
func (d *Dir) Close() error { return d.lock.Close() }

// Remove removes the state, and the directory too unless it has something in it
// that is not the control plane's. Close is still to be called.
func (d *Dir) Remove() error {
	var errs []error
	for _, path := range []string{d.PKI(), d.Etcd(), d.Kubeconfig(), d.portFile(), d.lock.Name()} {
		errs = append(errs, os.RemoveAll(path))
	}
	err := os.Remove(d.path)
	if entries, _ := os.ReadDir(d.path); len(entries) > 0 {
		err = nil
	}
	return errors.Join(append(errs, err)...)
}

// PKI returns the folder of keys and certificates.
func (d *Dir) PKI() string { return filepath.Join(d.path, "pki") }

// Etcd returns the folder of the database and of its sockets.
func (d *Dir) Etcd() string { return filepath.Join(d.path, "etcd") }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (d *Dir) Kubeconfig() string { return filepath.Join(d.path, "kubeconfig") }

// portFile keeps the port, so that kubeconfigs which people copied stay right.
func (d *Dir) portFile() string { return filepath.Join(d.path, "apiserver.port") }

func (d *Dir) makeFolders() error {
	for _, folder := range []string{d.PKI(), d.Etcd()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	return nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder returns the process id in the lock file, for messages only.
func holder(path string) string {
	content, err := os.ReadFile(filepath.Join(path, LockFile))
	if pid := strings.TrimSpace(string(content)); err == nil && pid != "" {
		return pid
	}
	return "unknown"
}
