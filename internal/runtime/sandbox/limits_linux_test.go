package sandbox

import (
	"strconv"
	"strings"
	"testing"
)

// The kernel enforces limits of what a user may have.
//
// hardening: H17
func TestRuntimeCannotExhaustItsUser(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		spec := spec(t, "greedy")
		begin(t, s, spec)
		seen := see(t, spec)
		if seen.Nice < niceness {
			t.Errorf("the nice value is %d, want at least %d", seen.Nice, niceness)
		}
		got := seen.Limits
		for name, want := range map[string]uint64{
			"core": 0, "open files": maxOpenFiles, "locked memory": 64 << 10, "message queues": 0,
			"pending signals": defaultProcesses, "real-time priority": 0, "nice": 0,
		} {
			if limit, ok := got[name]; !ok || limit > want {
				t.Errorf("the limit %q is %d, want at most %d", name, limit, want)
			}
		}
		if isolation, _ := s.Status(spec.Name); isolation.Isolation != "namespaces" {
			return
		}
		for what, most := range map[string]int{"inotify instances": 16, "inotify watches": 4096} {
			if n, err := strconv.Atoi(mustAsk(t, spec, "exhaust", what)); err != nil || n == 0 || n > most {
				t.Errorf("the runtime has %d %s, want at most %d", n, what, most)
			}
		}
	})
}

// A process has a limit of open files, and so have all processes of a runtime together.
func TestRuntimeCannotExhaustOpenFiles(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		spec := spec(t, "opener")
		begin(t, s, spec)
		for range 2 {
			_, _ = ask(spec, "spawn-opener", programPath(t, s, spec)) // It may be ended before it answers.
		}
		got := status(t, s, spec.Name, "it runs again", func(s Status) bool { return s.Running && s.Restarts == 1 })
		if got.LastExit == nil || !strings.Contains(got.LastExit.Reason, "open files and may have 8192") {
			t.Errorf("got %+v", got.LastExit)
		}
	})
}

// The files that epoll watches have a limit for a user, which a process could reach alone.
func TestRuntimeCannotExhaustEpoll(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		spec := spec(t, "watcher")
		begin(t, s, spec)
		_, _ = ask(spec, "exhaust", "epoll watches") // It may be ended before it answers.
		got := status(t, s, spec.Name, "it runs again", func(s Status) bool { return s.Running && s.Restarts == 1 })
		if got.LastExit == nil || !strings.Contains(got.LastExit.Reason, "may watch 100000") {
			t.Errorf("got %+v", got.LastExit)
		}
	})
}
