package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// serveRegistry runs `xpkg registry serve` with a folder in this process, logs in, and returns its address.
func serveRegistry(t *testing.T, dir string) string {
	t.Helper()
	address := port.Free(t)
	secret := strings.TrimSpace(runXpkg(
		t, "registry", "token", "create", "--dir", dir, "--repository", "*", "--action", "publish-new",
	))
	config := `{"auths":{"` + address + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("admin:"+secret)) + `"}}}`
	docker := t.TempDir()
	if err := os.WriteFile(filepath.Join(docker, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", docker)

	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(ctx, []string{"xpkg", "registry", "serve", "--dir", dir, "--listen", address},
			&cli.Env{Stdin: strings.NewReader(""), Stdout: in, Stderr: io.Discard})
		_ = in.Close() // It never fails.
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, address) {
		t.Fatalf("the registry does not serve: %q, %v", line, err)
	}
	return address
}

func TestSearchFindsAPushInTheIndexThatTheRegistryPublishes(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	registry := serveRegistry(t, filepath.Join(t.TempDir(), "registry"))
	file := filepath.Join(t.TempDir(), "a.xpkg")
	runXpkg(t, "build", "-f", filepath.Join("..", "..", "examples", "provider-hello", "package"), "-o", file)
	runXpkg(t, "push", "-f", file, registry+"/acme/provider-hello:v1.0.0")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		var out, errs bytes.Buffer
		env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
		code := cli.Main(ctx, []string{"xpkg", "search", "--kind", "Greeting", "--index", registry + "/index:main"}, env)
		if code == 0 && strings.Contains(out.String(), registry+"/acme/provider-hello") {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the package is not in the index: exit code %d\n%s%s", code, out.String(), errs.String())
		}
	}
}
