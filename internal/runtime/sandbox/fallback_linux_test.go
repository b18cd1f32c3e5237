package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// isolations are the isolations that a test can force.
var isolations = map[string]Isolation{"namespaces": Namespaces, "chroot": Chroot, "none": None}

// forEachIsolation runs a test in every isolation that this machine allows.
func forEachIsolation(t *testing.T, test func(t *testing.T, s *Supervisor)) {
	for name, isolation := range isolations {
		t.Run(name, func(t *testing.T) {
			s := newSupervisor(t, func(o *Options) { o.Isolation = isolation })
			g, err := s.launcher.detect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(g.String(), name) {
				t.Skipf("this machine has instead: %s", g)
			}
			test(t, s)
		})
	}
}

func TestWithoutNamespaces(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.Isolation = None })
	spec := spec(t, "plain")
	spec.Args = []string{"serve", "--certs=/tls/server", "/tls/server/tls.crt"}
	spec.Env["TLS_SERVER_CERTS_DIR"] = "/tls/server"
	spec.Files = map[string][]byte{"/tls/server/tls.crt": []byte("certificate")}
	begin(t, s, spec)
	status, _ := s.Status(spec.Name)
	if status.Isolation != "none: it was asked for" || status.PID == 0 || !status.Running {
		t.Errorf("got %+v", status)
	}
	got := see(t, spec)
	if got.UID != os.Geteuid() || got.Status["NoNewPrivs"] != "1" || got.Status["CapEff"] != "0000000000000000" ||
		got.PID != status.PID {
		t.Errorf("got %+v", got)
	}
	private := filepath.Join(s.opts.Dir, programsFolder, spec.Name, "private")
	if got.Dir != filepath.Join(private, "root", "work") {
		t.Errorf("it started in %s", got.Dir)
	}
	env := map[string]string{}
	for _, e := range got.Env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	if data := mustAsk(t, spec, "read", env["TLS_SERVER_CERTS_DIR"]+"/tls.crt"); data != "certificate" {
		t.Errorf("got %q", data)
	}
	if data := mustAsk(t, spec, "read", got.Args[3]); data != "certificate" {
		t.Errorf("got %q", data)
	}
	if got.Args[2] != "--certs="+env["TLS_SERVER_CERTS_DIR"] || env["TMPDIR"] != filepath.Join(private, "tmp") ||
		env["FROM_IMAGE"] != "1" {
		t.Errorf("got %q, %q", got.Args, got.Env)
	}
	spec.Files = map[string][]byte{"/tls/server/tls.crt": []byte("renewed")}
	if err := s.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if data := mustAsk(t, spec, "read", got.Args[3]); data != "renewed" {
		t.Errorf("got %q", data)
	}
}

func TestWithoutNamespacesAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is another user")
	}
	s := newSupervisor(t, func(o *Options) { o.Isolation = Chroot })
	spec := spec(t, "rooted")
	spec.Files = map[string][]byte{"/tls/server/tls.crt": []byte("certificate")}
	begin(t, s, spec)
	status, _ := s.Status(spec.Name)
	if !strings.HasPrefix(status.Isolation, "chroot: ") {
		t.Skipf("this machine has instead: %s", status.Isolation)
	}
	got := see(t, spec)
	if got.UID != outsideUser || got.GID != outsideUser || len(got.Groups) != 0 || got.Dir != "/work" {
		t.Errorf("got %+v", got)
	}
	if list := mustAsk(t, spec, "list", "/"); list != ".xpkg-files bin dev etc tls tmp work" {
		t.Errorf("it sees %s", list)
	}
	for _, name := range []string{"/tls/server/tls.crt", "/etc/hosts"} {
		if data := mustAsk(t, spec, "read", name); data == "" {
			t.Errorf("%s is empty", name)
		}
		if _, err := ask(spec, "write", name); err == nil {
			t.Errorf("%s can be written", name)
		}
	}
	spec.Files = map[string][]byte{"/tls/server/tls.crt": []byte("renewed")}
	if err := s.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if data := mustAsk(t, spec, "read", "/tls/server/tls.crt"); data != "renewed" {
		t.Errorf("got %q", data)
	}
}

// forbiddenVariable is set if this test binary runs where namespaces are forbidden.
const forbiddenVariable = "XPKG_TEST_FORBIDDEN"

// The supervisor detects a machine that forbids namespaces, and reports it.
func TestWhereNamespacesAreForbidden(t *testing.T) {
	if os.Getenv(forbiddenVariable) == "" {
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), forbiddenVariable+"=1", programVariable+"="+mustBuild(t))
		// Root in a namespace of its own is root enough to forbid others.
		id := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, UidMappings: id,
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}, Pdeathsig: syscall.SIGKILL,
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			t.Skipf("they are forbidden here already: %v", err)
		}
		if err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	s := newSupervisor(t, nil)
	spec := spec(t, "forbidden")
	begin(t, s, spec)
	got, _ := s.Status(spec.Name)
	if !strings.HasPrefix(
		got.Isolation,
		"none: cannot create namespaces: the setting user.max_user_namespaces does not allow it, and cannot change the user",
	) {
		t.Errorf("got %s", got.Isolation)
	}
}

func mustBuild(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Runtimes stay isolated on a machine that forbids overlays or /proc in namespaces.
func TestRuntimesAreIsolatedWithoutOverlayOrProc(t *testing.T) {
	for name, less := range map[string]capabilities{
		"overlay": {kind: inNamespaces, overlay: errRequested},
		"proc":    {kind: inNamespaces, proc: errRequested},
		"both":    {kind: inNamespaces, overlay: errRequested, proc: errRequested},
	} {
		t.Run(name, func(t *testing.T) {
			images := image(t)
			s := newSupervisor(t, func(o *Options) { o.Images = images })
			needNamespaces(t, s)
			s.launcher.capabilities = &less
			spec := spec(t, "less")
			spec.Files = map[string][]byte{"/tls/tls.crt": []byte("certificate")}
			begin(t, s, spec)
			if list, want := mustAsk(t, spec, "list", "/"), ".xpkg-files bin dev etc proc tls tmp work"; list != want {
				t.Errorf("it sees %s", list)
			}
			if data := mustAsk(t, spec, "read", "/tls/tls.crt"); data != "certificate" {
				t.Errorf("got %q", data)
			}
			if got := see(t, spec); got.UID != insideUser || got.PID != 1 || (less.proc == nil) != (len(got.Processes) == 1) {
				t.Errorf("got %+v", got)
			}
			if less.proc == nil {
				return
			}
			if got, _ := s.Status(spec.Name); got.Isolation != "namespaces, without /proc: it was asked for" {
				t.Errorf("got %s", got.Isolation)
			}
		})
	}
}

// Folders can have names that mean something to the kernel.
func TestFolderWithAnOddName(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, odd *Supervisor) {
		s := newSupervisor(t, func(o *Options) {
			o.Dir, o.Isolation = filepath.Join(openTemp(t), `a,b:c d\e "f" %41`), odd.opts.Isolation
		})
		spec := spec(t, "odd")
		begin(t, s, spec)
	})
}
