package datadir

import (
	"errors"
	"os"
	"syscall"
	"time"
)

var errLocked = errors.New("locked by another process")

// A program that looks whether the lock is held takes it for an instant, so one
// refusal proves nothing yet.
const (
	lockAttempts = 10
	lockPause    = 30 * time.Millisecond
)

// lockFile opens a file and locks it for this process. The system releases the lock when the process ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, f.Close())
		}
		if attempt == lockAttempts {
			return nil, errors.Join(errLocked, f.Close())
		}
		time.Sleep(lockPause)
	}
}
