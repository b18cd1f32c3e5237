package store

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is the interval between attempts at a lock of another process. The lock is
// held only while the directory is read and some files are removed.
const lockPoll = 5 * time.Millisecond

// changes serializes decisions about the content of the store across processes.
type changes struct {
	turn chan struct{}
	lock *flock.Flock
}

func newChanges(dir string) *changes {
	return &changes{
		turn: make(chan struct{}, 1), lock: flock.New(filepath.Join(dir, changesFile), flock.SetPermissions(fileMode)),
	}
}

func (c *changes) close() error { return c.lock.Close() }

// Exclusive runs do while no other caller, in this process or another, runs Exclusive or
// reserves space for a write. The function do must not write content and must return
// quickly.
func (s *Store) Exclusive(ctx context.Context, do func() error) error {
	select {
	case s.changes.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.changes.turn }()
	if locked, err := s.changes.lock.TryLockContext(ctx, lockPoll); !locked {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrStoreWrite.New(err, "cannot lock the store %s", s.dir)
	}
	defer s.changes.lock.Unlock() //nolint:errcheck // The end of the process unlocks it at the latest.
	return do()
}

// claim reports whether there is an entry under path, and records a use of it, so that it
// is not evicted before the caller reads it. It returns false for an entry that is being
// removed.
func (s *Store) claim(path string) bool {
	f, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if !tryLock(f, false) {
		return false
	}
	s.touch(path)
	return isFile(f, path)
}

// isFile reports whether path is still the path of the open file.
func isFile(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(ours, there)
}
