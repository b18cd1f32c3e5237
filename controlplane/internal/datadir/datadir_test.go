package datadir

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/controlplane/internal/report"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func code(err error) report.Code {
	var f *report.Failure
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

func TestOpenMakesPrivateFolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d := open(t, path)
	for _, folder := range []string{path, d.PKI(), d.Etcd()} {
		info, err := os.Stat(folder)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o700 {
			t.Errorf("%s has mode %o, want 700", folder, mode)
		}
	}
}

func TestOpenTwice(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	_, err := Open(path)
	if code(err) != report.DataDirInUse {
		t.Fatalf("got %v, want the code DataDirInUse", err)
	}
	if !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("%q does not name the process that holds the directory", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestOpenUnusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "dir")); code(err) != report.DataDirUnusable {
		t.Errorf("got %v, want the code DataDirUnusable", err)
	}
}

func TestOpenRefusesADirectoryThatOthersCanChange(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o770, 0o777 | os.ModeSticky} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); code(err) != report.DataDirUnusable {
			t.Errorf("mode %v: got %v, want the code DataDirUnusable", mode, err)
		}
		if entries, err := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("mode %v: the directory contains %v (%v)", mode, entries, err)
		}
	}
}

func TestRemove(t *testing.T) {
	for name, foreign := range map[string]bool{"alone": false, "with a file of another program": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "d")
			d := open(t, path)
			file := filepath.Join(path, "notes.txt")
			if foreign {
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Remove(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(file); (err == nil) != foreign {
				t.Errorf("the foreign file: %v", err)
			}
			if _, err := os.Stat(path); (err == nil) != foreign {
				t.Errorf("the directory: %v", err)
			}
			if _, err := os.Stat(d.Etcd()); err == nil {
				t.Error("the state is still there")
			}
		})
	}
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func TestListenKeepsThePort(t *testing.T) {
	d := open(t, t.TempDir())
	first, err := d.Listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	again, err := d.Listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if port(first) != port(again) {
		t.Errorf("got port %d, want port %d of the first start", port(again), port(first))
	}
}

func TestListenPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d := open(t, t.TempDir())
	_, err = d.Listen("127.0.0.1", port(taken))
	if code(err) != report.PortInUse {
		t.Fatalf("got %v, want the code PortInUse", err)
	}
	if !strings.Contains(err.Error(), strconv.Itoa(port(taken))) {
		t.Errorf("%q does not name the port", err)
	}
}

func TestListenDamagedPortFile(t *testing.T) {
	for _, content := range []string{"", "x", "99999", "-1"} {
		d := open(t, t.TempDir())
		if err := os.WriteFile(d.portFile(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := d.Listen("127.0.0.1", 0)
		if err != nil {
			t.Fatalf("%q: %v", content, err)
		}
		l.Close()
	}
}
