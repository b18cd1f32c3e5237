//go:build unix

package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// childVariable is the environment variable that turns the test binary into a process to
// kill.
const childVariable = "XPKG_TEST_STORE_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		storeChild(dir)
		return
	}
	os.Exit(m.Run())
}

// storeChild stores its standard input and prints a line before and after.
func storeChild(dir string) {
	if limit := os.Getenv(childVariable + "_LIMIT"); limit != "" {
		var most uint64
		_, _ = fmt.Sscan(limit, &most)
		_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most})
	}
	s, err := Open(dir, Options{})
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	fmt.Println("ready")
	content := strings.Repeat("x", 1<<20)
	err = s.Put(context.Background(), oci.DigestOf([]byte(content)), 1<<20, os.Stdin)
	fmt.Println("put:", errors.Is(err, ErrStoreWrite), err)
}

// startChild starts the child and waits until it is ready.
func startChild(t *testing.T, dir string, env ...string) (*exec.Cmd, io.WriteCloser, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), append(env, childVariable+"="+dir)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the child says %q", lines.Text())
	}
	return cmd, in, lines
}

// hardening: K1
func TestKillDuringWriteLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	cmd, in, _ := startChild(t, dir)
	if _, err := io.WriteString(in, strings.Repeat("x", 1<<19)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if files := append(
		ocitest.FilesUnder(t, s.Dir(), tempDir), ocitest.FilesUnder(t, s.Dir(), blobsDir)...,
	); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// A limit on the size of files is a full disk that needs no file system.
//
// hardening: K1
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	cmd, in, lines := startChild(t, dir, childVariable+"_LIMIT=300000")
	_, _ = io.WriteString(in, strings.Repeat("x", 1<<20))
	_ = in.Close()
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "put: true") {
		t.Errorf("the child says %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if files := append(
		ocitest.FilesUnder(t, s.Dir(), tempDir), ocitest.FilesUnder(t, s.Dir(), blobsDir)...,
	); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}
