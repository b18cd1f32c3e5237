package usage

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	cpu, err := parseCPU([]byte("7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0"))
	if want := 1750 * time.Millisecond; err != nil || cpu != want {
		t.Errorf("got %s, %v, want %s", cpu, err, want)
	}
	for _, bad := range []string{
		"", "7 (a) S 1 2", "7 (a) S 1 2 3 4 5 6 7 8 9 10 x 25 0", "7 (a) S 1 2 3 4 5 6 7 8 9 10 1 x 0",
	} {
		if _, err := parseCPU([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	status := []byte("Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n")
	if n, err := parseKilobytes(status, "VmRSS:"); err != nil || n != 1<<20 {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := parseKilobytes(status, "VmSwap:"); err == nil {
		t.Error("a line that is not there was found")
	}
}

func TestMachine(t *testing.T) {
	busy, err := parseBusy([]byte("cpu  100 10 50 9999 888 3 2 5 77 66\ncpu0 1 1\n"))
	if want := 1700 * time.Millisecond; err != nil || busy != want {
		t.Errorf("got %s, %v, want %s", busy, err, want)
	}
	for _, bad := range []string{"", "intr 1 2 3 4 5 6 7 8 9", "cpu 1 2 3", "cpu 1 2 3 4 5 6 x 8 9"} {
		if _, err := parseBusy([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	own := mustOf(t, os.Getpid())
	if busy, err := Machine(); err != nil || busy < own.CPU {
		t.Errorf("the machine worked %s, this process alone %s (%v)", busy, own.CPU, err)
	}
}

// Peak follows the memory of the process, and restarts from the current value after a reset.
func TestOwnUsage(t *testing.T) {
	const size, slack = 64 << 20, 8 << 20
	pid := os.Getpid()
	before := mustOf(t, pid)
	block := make([]byte, size)
	after := before
	for deadline := time.Now().Add(time.Minute); after.CPU < before.CPU+2*tick; after = mustOf(t, pid) {
		for i := 0; i < len(block); i += 4 << 10 {
			block[i]++
		}
		if time.Now().After(deadline) {
			t.Fatal("after a minute of work no processor time is counted")
		}
	}
	if grown := after.Resident - before.Resident; grown < size-slack || after.Peak < after.Resident-slack {
		t.Errorf("with %d bytes more in use, got first %+v and then %+v", len(block), before, after)
	}
	block = nil
	debug.FreeOSMemory()
	freed := mustOf(t, pid)
	if freed.Peak < after.Peak-slack || freed.Resident > after.Resident-size/2 {
		t.Errorf("after %d bytes were given back, got first %+v and then %+v", size-len(block), after, freed)
	}
	if err := ResetPeak(pid); err != nil {
		t.Fatal(err)
	}
	if now := mustOf(t, pid); now.Peak > freed.Resident+slack {
		t.Errorf("the peak is %d after it was reset, with %d bytes in use", now.Peak, freed.Resident)
	}
}

func TestThreadUsage(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	first, err := Thread()
	if err != nil {
		t.Fatal(err)
	}
	for now := first; now < first+10*time.Millisecond; {
		if now, err = Thread(); err != nil {
			t.Fatal(err)
		}
	}
}

// The processor time of a process that outlives its parent counts.
func TestRunWaitsForDescendants(t *testing.T) {
	const work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
	out, cpu, err := Run(exec.CommandContext(t.Context(), "sh", "-c", "echo started; ("+work+") >/dev/null 2>&1 &"))
	if err != nil || string(out) != "started\n" || cpu < 2*tick {
		t.Errorf("got %q, %s, %v", out, cpu, err)
	}
	if _, _, err := Run(exec.CommandContext(t.Context(), "sh", "-c", "exit 3")); err == nil {
		t.Error("a failed command has no error")
	}
}

func TestNoSuchProcess(t *testing.T) {
	if u, err := Of(-1); err == nil {
		t.Errorf("got %+v", u)
	}
}

func mustOf(t *testing.T, pid int) Usage {
	t.Helper()
	u, err := Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
