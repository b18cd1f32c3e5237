package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// serve responds at a Unix socket with a short path.
func serve(t *testing.T, handler http.HandlerFunc) Daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "xpkg")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "docker.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		_ = os.RemoveAll(dir)
	})
	return Daemon{Socket: socket}
}

func TestSave(t *testing.T) {
	d := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/images/ghcr.io%2Forg%2Fx:v1/get":
			_, _ = io.WriteString(w, "an archive")
		case "/images/broken/get":
			http.Error(w, "no space left", http.StatusInternalServerError)
		default:
			http.NotFound(w, r)
		}
	})
	saved, err := d.Save(t.Context(), "ghcr.io/org/x:v1")
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	if got, err := io.ReadAll(saved); err != nil || string(got) != "an archive" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := d.Save(t.Context(), "other"); !errors.Is(err, ErrNotThere) {
		t.Errorf("an image that is not there gives %v", err)
	}
	if _, err := d.Save(t.Context(), "broken"); err == nil || errors.Is(err, ErrNotThere) {
		t.Errorf("a daemon that fails gives %v", err)
	}
}

func TestNoDaemon(t *testing.T) {
	if _, err := (Daemon{Socket: filepath.Join(t.TempDir(), "none")}).
		Save(t.Context(), "x"); !errors.Is(err, ErrNotThere) {
		t.Errorf("no daemon gives %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Daemon{Socket: filepath.Join(t.TempDir(), "none")}).Save(ctx, "x"); !errors.Is(err, context.Canceled) ||
		errors.Is(err, ErrNotThere) {
		t.Errorf("an interrupted request gives %v", err)
	}
}

func TestDefault(t *testing.T) {
	for host, want := range map[string]string{
		"": "/var/run/docker.sock", "unix:///run/x.sock": "/run/x.sock", "tcp://127.0.0.1:1": "",
	} {
		t.Setenv("DOCKER_HOST", host)
		if got := Default().Socket; got != want {
			t.Errorf("DOCKER_HOST=%s gives %q, want %q", host, got, want)
		}
	}
}
