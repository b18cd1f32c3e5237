package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// usage is the resource usage of a runtime with its descendants.
type usage struct {
	// memory is in bytes: the private and swapped memory of the processes. Files that they
	// have mapped can be dropped and do not count.
	memory  int64
	threads int
}

// usageOf adds up a process and its descendants, or the descendants alone. Processes that
// end meanwhile do not count.
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
	u.memory += (field(status, "RssAnon:") + field(status, "RssShmem:") + field(status, "VmSwap:")) << 10
	u.threads += int(field(status, "Threads:"))
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
