package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

const (
	// lockName is the file that a server locks in its folder.
	lockName = "serve.lock"
	// contentLockName is the file that a server locks in the folder of its content. It is no name of a repository.
	contentLockName = ".serve.lock"
	// lockWait is the time for which a server waits for one that is stopping.
	lockWait = 2 * time.Second
)

// FolderLock is the lock of the folder of a server, and of the folder of its content.
type FolderLock []*flock.Flock

// LockFolder locks the folder of a server, and creates and locks the folder of its content, if it has one. Both stay
// locked until the lock is closed. Two servers with the same content would overwrite the lists of versions of each
// other. The content has a lock of its own because it can be a symbolic link into the folder of another server.
func LockFolder(dir, content string) (FolderLock, error) {
	files := []string{filepath.Join(dir, lockName)}
	if content != "" {
		if err := fileutil.MkdirAll(content, 0o700); err != nil {
			return nil, ErrServer.New(err, "cannot create %s", content)
		}
		files = append(files, filepath.Join(content, contentLockName))
	}
	var locks FolderLock
	for _, file := range files {
		lock, err := lockFile(file)
		if err != nil {
			return nil, errors.Join(err, locks.Close())
		}
		locks = append(locks, lock)
	}
	return locks, nil
}

func lockFile(file string) (*flock.Flock, error) {
	lock := flock.New(file, flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	locked, err := lock.TryLockContext(ctx, lockWait/20)
	switch {
	case locked:
		return lock, nil
	case err != nil && ctx.Err() == nil:
		return nil, ErrServer.New(err, "cannot lock the folder %s", filepath.Dir(file))
	}
	return nil, ErrServer.New(nil, "another registry server uses the folder %s", filepath.Dir(file)).
		WithDo(
			"Stop the other server, which is `xpkg registry serve` or `xpkg up`, or give this one a folder of its own with --dir. Several servers can share a registry with --backend.",
		)
}

// Close releases the lock.
func (l FolderLock) Close() error {
	var failed []error
	for _, lock := range l {
		failed = append(failed, lock.Close())
	}
	return errors.Join(failed...)
}

// checkFolder fails if the folder of the server is not the one that it has locked: its packages have not been removed,
// and stay in the index.
func (s *Server) checkFolder() error {
	if s.folder == nil {
		return nil
	}
	content := filepath.Join(s.options.Dir, imagesFolder)
	if info, err := os.Stat(content); err != nil || !os.SameFile(info, s.folder) {
		return ErrServer.New(err, "the folder %s was moved, removed or unmounted while the server runs", content)
	}
	return nil
}
