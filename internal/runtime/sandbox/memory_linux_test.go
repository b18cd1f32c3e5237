package sandbox

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Memory that is not in the address space of a process counts too, or a runtime cannot have
// it.
//
// hardening: H15
func TestMemoryOutsideOfProcessesIsLimited(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills the memory of many runtimes, which takes long")
	}
	const memory = 48 << 20
	tests := map[string]struct {
		amount int // In MiB.
		// only is the isolation that is tested; empty means all.
		only    string
		refused bool
	}{
		"page tables": {amount: 64},
		"/dev/shm":    {amount: 60, only: "namespaces"},
		"/tmp":        {amount: 60, only: "namespaces"},

		"unnamed file":               {amount: 64, refused: true},
		"secret memory":              {amount: 1, refused: true},
		"System V shared memory":     {amount: 64, refused: true},
		"System V semaphores":        {amount: 1, refused: true},
		"System V message queue":     {amount: 1, refused: true},
		"POSIX message queue":        {amount: 1, refused: true},
		"shared memory":              {amount: 64, refused: true},
		"/dev/zero":                  {amount: 64, refused: true, only: "namespaces chroot"},
		"huge pages":                 {amount: 2, refused: true},
		"pages in a pipe":            {amount: 1, refused: true},
		"queues of asynchronous I/O": {amount: 1, refused: true},
	}
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		isolation := filepath.Base(t.Name())
		for name, test := range tests {
			if !strings.Contains(cmp.Or(test.only, isolation), isolation) {
				continue
			}
			t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
				spec := spec(t, "hiding")
				spec.Memory = memory
				begin(t, s, spec)
				before, _ := s.Status(spec.Name)
				_, err := ask(spec, "hide", fmt.Sprintf("%d %s", test.amount, name))
				if test.refused {
					if now, _ := s.Status(spec.Name); err == nil || now.PID != before.PID {
						t.Errorf("the runtime has it: %v", err)
					}
					return
				}
				got := status(t, s, spec.Name, "it is ended", func(s Status) bool { return s.LastExit != nil })
				if !strings.Contains(got.LastExit.Reason, "and may use 48 MiB") {
					t.Errorf("got %+v, %v", got.LastExit, err)
				}
			})
			if err := s.Stop(t.Context(), "hiding"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
