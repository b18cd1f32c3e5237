package program_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// A control plane inherits no descriptor with which xpkg was started.
func TestNoProcessInheritsDescriptors(t *testing.T) {
	w := newWorkshop(t)
	planted, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer planted.Close()
	running := w.foregroundWith(t, w.newData(t, "descriptors"), planted)
	t.Cleanup(func() { running.stop(t) })
	if !isOpenIn(t, running.cmd.Process.Pid, planted.Name()) {
		t.Fatal("xpkg did not get the descriptor")
	}
	if isOpenIn(t, running.ControlPlanePID, planted.Name()) {
		t.Errorf("xpkg-controlplane has inherited %s", planted.Name())
	}
}

// isOpenIn reports whether a process has a descriptor of the given file.
func isOpenIn(t *testing.T, pid int, file string) bool {
	t.Helper()
	links, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	if err != nil || len(links) == 0 {
		t.Fatalf("the descriptors of process %d: %v, %v", pid, links, err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == file {
			return true
		}
	}
	return false
}
