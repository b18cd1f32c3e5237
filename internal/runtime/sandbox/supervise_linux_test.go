package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pkgruntime "github.com/xpkg-dev/xpkg/internal/runtime"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
)

// clock is a clock that a test controls. Its sleeps take no time.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	pauses []time.Duration
	enough int
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep returns at once, until there were enough pauses.
func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.pauses = append(c.pauses, d)
	over := len(c.pauses) >= c.enough
	c.mu.Unlock()
	if over {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (c *clock) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pauses)
}

func TestCrashLoop(t *testing.T) {
	clock := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), enough: 9}
	s := newSupervisor(t, func(o *Options) { o.Now, o.Sleep = clock.Now, clock.Sleep })
	spec := Spec{Name: "crash", Digest: imageDigest, Args: []string{"fail"}}
	if err := s.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, patience, "it has ended nine times", func() (
		string, bool,
	) {
		return fmt.Sprint(clock.count()), clock.count() == 9
	})
	second := time.Second
	want := []time.Duration{
		second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 60 * second, 60 * second, 60 * second,
	}
	if diff := cmp.Diff(want, clock.pauses); diff != "" {
		t.Error(diff)
	}
	got, ok := s.Status("crash")
	if !ok || got.Running || got.PID != 0 || got.Restarts != 8 || got.LastExit == nil || got.LastExit.Code != 3 ||
		got.LastExit.Signal != "" {
		t.Errorf("got %+v, %+v", got, got.LastExit)
	}
	if want := got.LastExit.Time.Add(time.Minute); !got.NextStart.Equal(want) {
		t.Errorf("it starts again at %s, want %s", got.NextStart, want)
	}
	if n := strings.Count(readLog(t, s, "crash", -1), "failing\n"); n != 9 {
		t.Errorf("it failed %d times", n)
	}
}

func TestBackoffStartsOverAfterALongRun(t *testing.T) {
	var b backoff
	var got []time.Duration
	for _, ran := range []time.Duration{0, time.Second, 59 * time.Second, time.Minute, 0} {
		got = append(got, b.after(ran))
	}
	if diff := cmp.Diff(
		[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, time.Second, 2 * time.Second}, got,
	); diff != "" {
		t.Error(diff)
	}
}

func readLog(t testing.TB, s *Supervisor, name string, tail int) string {
	t.Helper()
	r, err := s.Logs(context.Background(), name, false, tail)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRestart(t *testing.T) {
	s := newSupervisor(t, nil)
	spec := spec(t, "again")
	begin(t, s, spec)
	first, _ := s.Status(spec.Name)
	if err := s.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if now, _ := s.Status(spec.Name); now.PID != first.PID {
		t.Error("it was started anew although nothing has changed")
	}
	spec.Env["NEW"] = "1"
	if err := s.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	serving(t, spec)
	now, _ := s.Status(spec.Name)
	if now.PID == first.PID || !gone(first.PID) || !slices.Contains(see(t, spec).Env, "NEW=1") {
		t.Errorf("before %+v, now %+v", first, now)
	}
	if log := readLog(t, s, spec.Name, -1); !strings.Contains(log, "stopping in order") {
		t.Errorf("it was not asked to stop: %s", log)
	}
	if _, err := ask(spec, "exit", "7"); err == nil {
		t.Error("it goes on")
	}
	again := status(t, s, spec.Name, "it runs again", func(s Status) bool { return s.Running && s.PID != now.PID })
	if again.LastExit == nil || again.LastExit.Code != 7 || again.Restarts != 1 {
		t.Errorf("got %+v", again)
	}
	if err := s.Stop(t.Context(), spec.Name); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Status(spec.Name); ok || !gone(again.PID) {
		t.Error("it still runs")
	}
	if err := s.Stop(t.Context(), spec.Name); err != nil {
		t.Errorf("stopping what does not run: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(s.opts.Dir, programsFolder)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A runtime that ignores SIGTERM is killed with its descendants after the grace period,
// or when the context of the caller is done.
func TestStopIsFinal(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		for name, limit := range map[string]time.Duration{"grace": patience, "context": 50 * time.Millisecond} {
			s.opts.Grace = 300 * time.Millisecond
			if name == "context" {
				s.opts.Grace = patience
			}
			spec := spec(t, "stubborn-"+name)
			spec.Env["STUBBORN"] = "1"
			begin(t, s, spec)
			mustAsk(t, spec, "spawn", programPath(t, s, spec))
			root := s.programs[spec.Name].run.status.PID
			all := descendants(t, root)
			if len(all) != 2 {
				t.Fatalf("the program and its child should run: %v", all)
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if err := s.Stop(ctx, spec.Name); err != nil {
				t.Fatal(err)
			}
			for _, pid := range all {
				if !gone(pid) {
					t.Errorf("process %d is still there", pid)
				}
			}
		}
	})
}

// programPath returns the path of the executable as the runtime sees it, for an isolation
// without /proc.
func programPath(t testing.TB, s *Supervisor, spec Spec) string {
	t.Helper()
	if g, err := s.launcher.detect(t.Context()); err != nil || g.kind != inChroot {
		return ""
	}
	return "/bin/program"
}

// descendants returns a process and all below it.
func descendants(t testing.TB, pid int) []int {
	t.Helper()
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, childrenOf(all[i])...)
	}
	return all
}

// A killed supervisor leaves no process behind, in any isolation.
func TestKilledSupervisorLeavesNothing(t *testing.T) {
	for name, isolation := range isolations {
		t.Run(name, func(t *testing.T) {
			spec := spec(t, "orphan")
			images := image(t)
			dir := filepath.Join(openTemp(t), "data")
			cmd := exec.Command(
				os.Args[0], superviseCommand, dir, images[imageDigest].Path, strconv.Itoa(int(isolation)), spec.Env["PORT"],
			)
			cmd.Stderr = testWriter{t}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || line != "running\n" {
				_ = cmd.Process.Kill()
				t.Fatalf("the supervisor said %q, %v", line, err)
			}
			serving(t, spec)
			spawn := ""
			if isolation == Chroot && os.Geteuid() == 0 {
				spawn = "/bin/program"
			}
			mustAsk(t, spec, "spawn", spawn)
			mustAsk(t, spec, "call", "pdeathsig") // It tries to stay.
			all := descendants(t, cmd.Process.Pid)[1:]
			if len(all) < 2 {
				t.Fatalf("the program and its child should run: %v", all)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			wait.Until(t, patience, "all of it is gone", func() (string, bool) {
				left := slices.DeleteFunc(slices.Clone(all), gone)
				return fmt.Sprint(left), len(left) == 0
			})
			// The next one starts where it left off.
			s := newSupervisor(t, func(o *Options) { o.Dir, o.Images, o.Isolation = dir, images, isolation })
			begin(t, s, spec)
		})
	}
}

// supervise is the supervisor that is killed: folder, image, isolation, port.
func supervise() {
	isolation, _ := strconv.Atoi(os.Args[4])
	s, err := New(Options{
		Dir: os.Args[2], Isolation: Isolation(isolation),
		Images: folders{imageDigest: {Path: os.Args[3], Config: unpack.RuntimeConfig{Entrypoint: []string{"/bin/program"}}}},
	})
	if err == nil {
		err = s.Ensure(context.Background(), Spec{Name: "orphan", Digest: imageDigest, Env: map[string]string{
			"PORT": os.Args[5], "STUBBORN": "1",
		}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("running")
	select {}
}

func TestMemoryLimit(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		spec := spec(t, "hungry")
		spec.Memory = 64 << 20
		begin(t, s, spec)
		mustAsk(t, spec, "eat", "20")
		if now, _ := s.Status(spec.Name); !now.Running || now.Restarts != 0 {
			t.Fatalf("got %+v", now)
		}
		_, _ = ask(spec, "eat", "80") // It may be ended before it answers.
		got := status(t, s, spec.Name, "it runs again", func(s Status) bool { return s.Running && s.Restarts == 1 })
		if got.LastExit == nil || got.LastExit.Signal != "killed" ||
			!strings.Contains(got.LastExit.Reason, "MiB of memory and may use 64 MiB") {
			t.Errorf("got %+v", got.LastExit)
		}
	})
}

// The kernel ends a runtime and its children before everything else, and a runtime cannot
// change that.
//
// hardening: H16
func TestRuntimeIsTheFirstChoiceWhenMemoryIsShort(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		spec := spec(t, "preferred")
		begin(t, s, spec)
		now, _ := s.Status(spec.Name)
		check := func() {
			t.Helper()
			text, err := os.ReadFile(processFile(now.PID, "oom_score_adj"))
			if got := strings.TrimSpace(string(text)); err != nil || got != "1000" {
				t.Errorf("the runtime has the score %s, %v", got, err)
			}
		}
		check()
		if strings.HasPrefix(now.Isolation, "none") {
			return // The runtime has the /proc and the user of the supervisor.
		}
		mustAsk(t, spec, "escape-oom", "")
		check()
	})
}

func TestProcessLimit(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.Isolation = None })
	spec := spec(t, "fertile")
	spec.Processes = 40
	begin(t, s, spec)
	for range 20 {
		_, _ = ask(spec, "spawn", "") // It may be ended before it answers.
	}
	got := status(t, s, spec.Name, "it runs again", func(s Status) bool { return s.Running && s.Restarts == 1 })
	if got.LastExit == nil || !strings.Contains(got.LastExit.Reason, "processes and threads, at most 40 are allowed") {
		t.Errorf("got %+v", got.LastExit)
	}
}

func TestFilesAreReplacedInPlace(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		spec := spec(t, "files")
		spec.Env["CERTS"] = "/tls"
		spec.Files = map[string][]byte{
			"/tls/tls.crt": []byte("one"), "/tls/tls.key": []byte("one"), "/tls/deep/ca.crt": []byte("ca"),
		}
		begin(t, s, spec)
		before, _ := s.Status(spec.Name)
		at := "/tls"
		for _, e := range see(t, spec).Env {
			if value, ok := strings.CutPrefix(e, "CERTS="); ok {
				at = value
			}
		}
		for _, content := range []string{"two", "three"} {
			files := map[string][]byte{
				"/tls/tls.crt": []byte(content), "/tls/tls.key": []byte(content), "/tls/deep/ca.crt": []byte("ca"),
			}
			spec.Files = files
			if err := s.Ensure(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			files["/tls/tls.crt"] = nil // The caller may change its own map.
			for name, want := range map[string]string{"tls.crt": content, "tls.key": content, "deep/ca.crt": "ca"} {
				if got := mustAsk(t, spec, "read", at+"/"+name); got != want {
					t.Errorf("%s holds %q, want %q", name, got, want)
				}
			}
		}
		if now, _ := s.Status(spec.Name); now.PID != before.PID || now.Restarts != 0 {
			t.Error("it was started anew")
		}
		// The files exist after a restart too.
		_, _ = ask(spec, "exit", "0")
		status(t, s, spec.Name, "it runs again", func(s Status) bool { return s.Running && s.Restarts == 1 })
		serving(t, spec)
		if at != "/tls" {
			return // Another path after each start.
		}
		if got := mustAsk(t, spec, "read", at+"/tls.key"); got != "three" {
			t.Errorf("got %q", got)
		}
	})
}

func TestChanges(t *testing.T) {
	s := newSupervisor(t, nil)
	spec := spec(t, "changing")
	begin(t, s, spec)
	if name := <-s.Changes(); name != spec.Name {
		t.Errorf("got %s", name)
	}
	_, _ = ask(spec, "exit", "0")
	status(t, s, spec.Name, "it runs again", func(s Status) bool { return s.Running && s.Restarts == 1 })
	if name := <-s.Changes(); name != spec.Name {
		t.Errorf("got %s", name)
	}
	if err := s.Stop(t.Context(), spec.Name); err != nil {
		t.Fatal(err)
	}
	<-s.Changes()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range s.Changes() {
		t.Error("something changes after the end")
	}
	if err := s.Ensure(t.Context(), spec); !errors.Is(err, ErrProgramStart) {
		t.Errorf("got %v", err)
	}
}

func TestOneSupervisorForAFolder(t *testing.T) {
	s := newSupervisor(t, nil)
	if _, err := New(s.opts); !errors.Is(err, ErrProgramsInUse) {
		t.Errorf("got %v", err)
	}
}

func TestEnsureRefuses(t *testing.T) {
	images := image(t)
	none := oci.DigestOf([]byte("no entrypoint"))
	images[none] = Root{Path: images[imageDigest].Path}
	s := newSupervisor(t, func(o *Options) { o.Images = images })
	running := spec(t, "good")
	begin(t, s, running)
	before, _ := s.Status("good")
	tests := map[string]struct {
		change func(*Spec)
		want   errcode.Code
	}{
		"name":            {func(s *Spec) { s.Name = "../up" }, ErrProgramSpec},
		"no digest":       {func(s *Spec) { s.Digest = oci.Digest{} }, ErrProgramSpec},
		"file":            {func(s *Spec) { s.Files = map[string][]byte{"/a/../b": nil} }, ErrProgramSpec},
		"file and folder": {func(s *Spec) { s.Files = map[string][]byte{"/a": nil, "/a/b": nil} }, ErrProgramSpec},
		"our files":       {func(s *Spec) { s.Files = map[string][]byte{"/.xpkg-files/a": nil} }, ErrProgramSpec},
		"variable":        {func(s *Spec) { s.Env = map[string]string{"A=B": ""} }, ErrProgramSpec},
		"argument":        {func(s *Spec) { s.Args = []string{"a\x00b"} }, ErrProgramSpec},
		"limit":           {func(s *Spec) { s.Memory = -1 }, ErrProgramSpec},
		"no entrypoint":   {func(s *Spec) { s.Digest = none }, pkgruntime.ErrNoProgram},
		"not in the path": {func(s *Spec) { s.Command = []string{"sh"} }, pkgruntime.ErrNoProgram},
		"not a program":   {func(s *Spec) { s.Command = []string{"/work"} }, pkgruntime.ErrNoProgram},
		"absent":          {func(s *Spec) { s.Command = []string{"../../bin/sh"} }, pkgruntime.ErrNoProgram},
	}
	for name, test := range tests {
		spec := running
		test.change(&spec)
		if err := s.Ensure(t.Context(), spec); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if now, ok := s.Status("good"); !ok || now.PID != before.PID {
		t.Error("what runs was disturbed")
	}
	broken := Spec{Name: "broken", Digest: imageDigest, Command: []string{"/etc/mine"}}
	if err := s.Ensure(t.Context(), broken); !errors.Is(err, ErrProgramStart) ||
		!strings.Contains(err.Error(), "exec format error") {
		t.Errorf("got %v", err)
	}
	if now, ok := s.Status("broken"); !ok || now.Running || now.LastExit == nil || now.NextStart.IsZero() {
		wait.Until(t, patience, "the failure is in the status", func() (string, bool) {
			now, _ := s.Status("broken")
			return fmt.Sprintf("%+v", now), now.LastExit != nil && strings.Contains(now.LastExit.Reason, "exec format error")
		})
	}
}
