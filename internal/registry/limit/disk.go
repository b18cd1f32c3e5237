package limit

// usualFiles is the number of files that a process can open on systems that do not tell it.
const usualFiles = 4096

// Disk is the file system on which a server stores content. Uploads leave a reserve free, which the server needs to go
// on: 5 % of the space, at most 1 GiB, and 1 % of the files. The zero value has no limit.
type Disk struct {
	// Dir is a folder of the file system; empty for a server that stores nothing.
	Dir string
	// free replaces the space of the file system in tests.
	free func(dir string) (space, error)
}

// space is the space of a file system, in bytes and in files. A file system without a fixed number of files has none.
type space struct{ size, free, files, freeFiles uint64 }

const (
	mostReserve                = 1 << 30
	reserveShare, filesReserve = 20, 100
)

// Room returns the number of bytes that uploads can still use. A file system that does not tell its space has room:
// writes fail when it is full.
func (d *Disk) Room() int64 {
	const most = 1 << 62
	if d == nil || d.Dir == "" {
		return most
	}
	free := d.free
	if free == nil {
		free = freeOf
	}
	s, err := free(d.Dir)
	if err != nil {
		return most
	}
	reserve := min(s.size/reserveShare, mostReserve)
	if s.free <= reserve || s.files > 0 && s.freeFiles <= s.files/filesReserve {
		return 0
	}
	return int64(min(s.free-reserve, most)) //nolint:gosec // It is below an int64.
}

// Check returns the refusal of a change that needs disk space, and nil while there is room.
func (d *Disk) Check() *Refusal {
	if d.Room() > 0 {
		return nil
	}
	return errDiskFull()
}

func errDiskFull() *Refusal {
	return &Refusal{
		what: "the disk of the server is almost full", advice: "the operator of the server has to free space on it",
	}
}
