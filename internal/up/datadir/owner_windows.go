package datadir

// ownerName is not used on Windows.
const ownerName = "up.owner"

// lockOwner does nothing: Windows does not report the process of a lock.
func lockOwner(string) (release func() error, err error) { return func() error { return nil }, nil }

// OwnerPID returns the recorded process ID.
func OwnerPID(path string) (int, error) { return RecordedPID(path), nil }
