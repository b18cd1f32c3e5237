package registry_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// mustOpen opens and closes a server of which the folder and the content are free.
func mustOpen(t *testing.T, o registry.Options) {
	t.Helper()
	s, err := registry.New(o)
	if err != nil {
		t.Fatalf("a server after the first one was stopped: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Two servers on one folder would lose versions that both have acknowledged.
func TestAFolderHasOneServer(t *testing.T) {
	first := start(t, nil)
	other := registry.Options{Dir: first.dir, Host: host}
	if s, err := registry.New(other); !errors.Is(err, registry.ErrServer) {
		t.Fatalf("a second server on the folder: %v, %v", s, err)
	} else if do := errcode.From(err).Do; !strings.Contains(do, "--dir") {
		t.Errorf("the remedy %q does not name the flag", do)
	}
	first.stop()
	mustOpen(t, other)
}

// The folder of the content can be a link into the folder of another server.
func TestAContentHasOneServer(t *testing.T) {
	first := start(t, nil)
	linked := registry.Options{Dir: t.TempDir(), Host: host}
	if err := os.Symlink(filepath.Join(first.dir, "registry"), filepath.Join(linked.Dir, "registry")); err != nil {
		t.Skipf("this system has no symbolic links: %v", err)
	}
	if s, err := registry.New(linked); !errors.Is(err, registry.ErrServer) {
		t.Fatalf("a second server with the content: %v, %v", s, err)
	}
	first.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	first.stop()
	mustOpen(t, linked)
}

// TestAFolderThatDisappearsKeepsTheIndex moves the folder of a server away, as if it was unmounted, and back. Without
// its packages, the server would publish an empty index.
func TestAFolderThatDisappearsKeepsTheIndex(t *testing.T) {
	parent := t.TempDir()
	dir, elsewhere := filepath.Join(parent, "folder"), filepath.Join(parent, "elsewhere")
	s := start(t, func(o *registry.Options) {
		if err := os.Rename(o.Dir, dir); err != nil {
			t.Fatal(err)
		}
		o.Dir = dir
	})
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.waitUntil(t, "the package is indexed", func() bool { return s.indexed(t) == 1 })
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		s.Site().CheckAll()
	}
	move(dir, elsewhere)
	s.waitUntil(t, "an update fails", func() bool { return s.Site().Failure() != nil })
	if got := s.indexed(t); got != 1 {
		t.Errorf("%d packages are found", got)
	}
	move(elsewhere, dir)
	s.waitUntil(t, "an update succeeds", func() bool { return s.Site().Failure() == nil })
	if got := s.indexed(t); got != 1 {
		t.Errorf("%d packages are found after the folder is there again", got)
	}
}
