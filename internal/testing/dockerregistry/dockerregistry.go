// Package dockerregistry runs the registry of CNCF distribution, an independent implementation, for tests.
package dockerregistry

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
)

// Start starts the program docker-registry of Debian's package of that name, and returns its address. It stops when the
// test ends. Content can be deleted.
func Start(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		prerequisite.Missing(t, "docker-registry is not installed: apt-get install docker-registry")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yml")
	content := "version: 0.1\nlog: {level: info, formatter: json}\nstorage: {filesystem: {rootdirectory: \"" + dir +
		"/data\"}, delete: {enabled: true}}\nhttp: {addr: 127.0.0.1:0}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "serve", file)
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addresses, drained := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(drained)
		defer close(addresses)
		lines := bufio.NewScanner(logs)
		for lines.Scan() {
			var line struct{ Msg string }
			if json.Unmarshal(lines.Bytes(), &line) != nil {
				continue
			}
			if address, ok := strings.CutPrefix(line.Msg, "listening on "); ok {
				addresses <- address
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-drained
		_ = cmd.Wait() // It was stopped by the context.
	})
	address, ok := <-addresses
	if !ok {
		t.Fatal("docker-registry ended without listening")
	}
	return address
}
