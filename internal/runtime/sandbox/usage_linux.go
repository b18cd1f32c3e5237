package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// usage is the resource usage of a runtime with its descendants.
type usage struct {
	// memory is in bytes: the private and swapped memory of the processes, and their page
	// tables. Files that they have mapped can be dropped and do not count. shared are mapped
	// files in memory, which count for each process.
	memory, shared int64
	threads, files int
	// watches is an upper bound of the files that epoll instances watch, which use memory of the
	// kernel. The kernel limits their number for each user.
	watches int
}

// usageOf returns the total usage of the descendants of a process and, with itself, of the process.
// Processes that exit meanwhile do not count.
func usageOf(pid int, itself bool) usage {
	var u usage
	waiting := []int{pid}
	// A runtime that starts processes faster than they are counted is over its limit.
	const most = 100_000
	for n := 0; len(waiting) > 0 && n < most; n++ {
		pid := waiting[0]
		waiting = append(waiting[1:], childrenOf(pid)...)
		if n > 0 || itself {
			u.add(pid)
		}
	}
	return u
}

func (u *usage) add(pid int) {
	status, err := os.ReadFile(processFile(pid, "status"))
	if err != nil {
		return
	}
	u.memory += (field(status, "RssAnon:") + field(status, "VmSwap:") + field(status, "VmPTE:")) << 10
	u.shared += field(status, "RssShmem:") << 10
	u.threads += int(field(status, "Threads:"))
	files, polls := openFiles(pid)
	u.files += files
	u.watches += files * polls
}

// openFiles returns the number of open files of a process, and how many of them are epoll
// instances. Both are 0 if it has ended.
func openFiles(pid int) (files, polls int) {
	dir, err := os.Open(processFile(pid, "fd"))
	if err != nil {
		return 0, 0
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, 0
	}
	for _, name := range names {
		if target, err := os.Readlink(filepath.Join(dir.Name(), name)); err == nil && target == "anon_inode:[eventpoll]" {
			polls++
		}
	}
	return len(names), polls
}

// sizeOfFiles returns the size of the files in file systems in memory of a process in namespaces, which are
// in memory whether they are mapped or not.
func sizeOfFiles(pid int, paths []string) (size int64) {
	for _, path := range paths {
		var stat unix.Statfs_t
		if unix.Statfs(processFile(pid, filepath.Join("root", path)), &stat) == nil {
			size += int64(stat.Blocks-stat.Bfree) * stat.Bsize
		}
	}
	return size
}

func processFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// field returns the number in a line of a status file, in the unit of the file, or 0 if
// the line is missing.
func field(status []byte, name string) int64 {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			fields := bytes.Fields(rest)
			if len(fields) == 0 {
				return 0
			}
			n, err := strconv.ParseInt(string(fields[0]), 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// childrenOf lists the children of all threads of a process.
func childrenOf(pid int) []int {
	threads, err := os.ReadDir(processFile(pid, "task"))
	if err != nil {
		return nil
	}
	var children []int
	for _, thread := range threads {
		list, err := os.ReadFile(filepath.Join(processFile(pid, "task"), thread.Name(), "children"))
		if err != nil {
			continue
		}
		for _, word := range bytes.Fields(list) {
			if child, err := strconv.Atoi(string(word)); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
