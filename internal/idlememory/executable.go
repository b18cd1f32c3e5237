package idlememory

import (
	"strconv"
	"strings"
)

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// mappingsOf returns the mappings of a file that are not writable from the list of mappings of a process (proc_pid_maps(5)).
func mappingsOf(file, maps string) []mapping {
	var out []mapping
	for line := range strings.Lines(maps) {
		// Address, permissions, offset, device, inode, and the path, which can contain spaces.
		path := strings.TrimSuffix(line, "\n")
		var fields [5]string
		for i := range fields {
			fields[i], path, _ = strings.Cut(strings.TrimLeft(path, " "), " ")
		}
		first, last, _ := strings.Cut(fields[0], "-")
		from, errFrom := strconv.ParseUint(first, 16, strconv.IntSize)
		to, errTo := strconv.ParseUint(last, 16, strconv.IntSize)
		if strings.TrimLeft(path, " ") == file && !strings.Contains(fields[1], "w") && errFrom == nil && errTo == nil && from < to {
			out = append(out, mapping{uintptr(from), uintptr(to)})
		}
	}
	return out
}
