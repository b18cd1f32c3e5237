package remote

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
)

// debianRegistry starts the registry that Debian ships.
func debianRegistry(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("docker-registry")
	if err != nil {
		prerequisite.Missing(t, "docker-registry is not installed: apt-get install docker-registry")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	ocitest.Must(t, os.WriteFile(config, []byte("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: "+
		dir+"/data}}\nhttp: {addr: 127.0.0.1:0}\n"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, binary, "serve", config)
	logs, err := cmd.StderrPipe()
	ocitest.Must(t, err)
	ocitest.Must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return listenAddress(t, logs)
}

// listenAddress waits for the log line with the address of the registry.
func listenAddress(t *testing.T, logs io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		var seen bytes.Buffer
		buf := make([]byte, 4096)
		for {
			n, err := logs.Read(buf)
			seen.Write(buf[:n])
			if _, after, ok := strings.Cut(seen.String(), "listening on "); ok {
				if address, _, ok := strings.Cut(after, "\""); ok {
					found <- address
					_, _ = io.Copy(io.Discard, logs)
					return
				}
			}
			if err != nil {
				found <- ""
				return
			}
		}
	}()
	select {
	case address := <-found:
		if address == "" {
			t.Fatal("docker-registry ended without listening")
		}
		return address
	case <-time.After(20 * time.Second):
		t.Fatal("docker-registry does not listen")
	}
	return ""
}

func TestDebianRegistry(t *testing.T) {
	host := debianRegistry(t)
	r := testRemote(t, nil)
	for title, a := range map[string]oci.Artifact{"image": ocitest.Hello(t), "index": ocitest.TwoPlatforms(t)} {
		ref := oci.MustParseReference(host + "/acme/" + title + ":v1")
		digest, err := r.Push(t.Context(), ref, a)
		ocitest.Must(t, err)
		if digest != a.Root().Digest {
			t.Errorf("pushed %s as %s", a.Root().Digest, digest)
		}
		got, m, err := fetchYAML(t.Context(), r, storetest.New(t), ref)
		if err != nil || !strings.HasPrefix(string(got), ocitest.HelloYAML) || m.Root != digest || m.Base == nil {
			t.Errorf("%q %+v %v", got, m, err)
		}
		if _, err := r.Push(t.Context(), ref, a); err != nil {
			t.Errorf("push again: %v", err)
		}
	}
	tags, err := r.Tags(t.Context(), oci.MustParseReference(host+"/acme/image:v1"))
	if err != nil || len(tags) != 1 {
		t.Errorf("%v %v", tags, err)
	}
	err = read(t, r, oci.MustParseReference(host+"/acme/image:v2"))
	ocitest.WantCode(t, err, ErrTagNotFound)
	err = read(t, r, oci.MustParseReference(host+"/acme/nothing:v2"))
	ocitest.WantCode(t, err, ErrRepositoryNotFound)
	ocitest.WantCode(t, err, ErrTagNotFound)
	ocitest.Must(t, r.Ping(t.Context(), host))
	wrong := ocitest.Hello(t)
	_, err = r.Push(t.Context(), oci.MustParseReference(host+"/acme/image@"+ocitest.EmptyDigest), wrong)
	ocitest.WantCode(t, err, oci.ErrInvalidReference)
}
