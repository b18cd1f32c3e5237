//go:build unix

package xpkg

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Named pipes and sockets in the folder of a package are not opened: a read of a pipe would not end.
//
// hardening: L6
func TestSpecialFilesAreNotRead(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "crossplane.yaml"), []byte(meta(Provider)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".git", "object.yaml"), []byte("kind: Secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root) // The path of a socket has a short limit.
	socket, err := net.Listen("unix", "socket.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	f, err := ReadFolder(os.DirFS(root), FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Documents) != 1 {
		t.Errorf("got %v", raws(f.Documents))
	}
}
