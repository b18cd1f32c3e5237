//go:build unix

package limit

import "golang.org/x/sys/unix"

// mostFiles returns the number of files that this process may open. The runtime of Go has raised it to the hard limit.
func mostFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return usualFiles
	}
	return uint64(limit.Cur) //nolint:unconvert // FreeBSD has a signed type.
}

// freeOf returns the space of the file system with a folder.
func freeOf(dir string) (space, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return space{}, err
	}
	block := uint64(stat.Bsize) //nolint:gosec // It is positive.
	return space{
		size: stat.Blocks * block, free: uint64(stat.Bavail) * block, //nolint:gosec,unconvert // FreeBSD has signed types.
		files: uint64(stat.Files), freeFiles: uint64(stat.Ffree), //nolint:gosec,unconvert // As above.
	}, nil
}
