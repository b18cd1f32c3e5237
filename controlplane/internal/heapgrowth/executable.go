package heapgrowth

import (
	"fmt"
	"strings"
)

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// mappingsOf returns the mappings of a file that are not writable from the list of mappings of a process
// (proc_pid_maps(5)).
func mappingsOf(file, maps string) []mapping {
	var out []mapping
	for line := range strings.Lines(maps) {
		// Address, permissions, offset, device, inode, and the path, which can contain spaces.
		var m mapping
		var permissions string
		_, err := fmt.Sscanf(line, "%x-%x %s", &m.from, &m.to, &permissions)
		if err == nil && m.from < m.to && !strings.Contains(permissions, "w") && strings.HasSuffix(line, " "+file+"\n") {
			out = append(out, m)
		}
	}
	return out
}
