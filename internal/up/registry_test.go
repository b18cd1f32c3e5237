//go:build unix

package up_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/xpkg-dev/xpkg/internal/up"
)

// Every process of this machine can read the registry; only processes that can read the
// data directory can change it.
func TestRegistryOfControlPlaneIsProtected(t *testing.T) {
	needControlPlane(t)
	dir := filepath.Join(t.TempDir(), "data")
	unfinished := filepath.Join(dir, "registry", "group", "package", "_uploads", "upload.1")
	// The user may have made the directory, readable for other users.
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	first := start(t, up.Options{Dir: dir})
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "registry.token"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode(), want, err)
		}
	}
	digest := put(t, first.State)
	image, err := random.Image(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag(t, first.State), image); err == nil {
		t.Error("a push without the token replaced an image")
	}
	if err := remote.Delete(tag(t, first.State).Digest(digest.String())); err == nil {
		t.Error("a delete without the token removed an image")
	}
	want(t, first.State, digest)
	response, err := http.Post("http://"+first.Registry+"/v2/group/package/blobs/uploads/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("an upload without the token: %s", response.Status)
	}
	if report, err := up.Examine(limited(t), dir); err != nil || len(report.Checks) != 3 || !report.Checks[1].Healthy {
		t.Errorf("the registry does not count as healthy: %+v, %v", report.Checks, err)
	}
	token, err := up.RegistryToken(dir, first.Registry)
	if err != nil || token == "" {
		t.Fatal(err)
	}
	if other, err := up.RegistryToken(dir, "127.0.0.1:1"); other != "" || err != nil {
		t.Errorf("another registry gets the token: %v", err)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	// Another program may listen on the port now.
	if stopped, err := up.RegistryToken(dir, first.Registry); stopped != "" || err != nil {
		t.Errorf("the token of a registry that does not run is sent: %v", err)
	}
	// A process that was killed leaves the part of an upload.
	if err := os.MkdirAll(filepath.Dir(unfinished), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, unfinished, "part of a blob")
	// A push waits for a registry that starts, and needs its token.
	early := make(chan string, 1)
	second := start(t, up.Options{Dir: dir, Progress: func(e up.Event) {
		if e.Stage == up.StageControlPlane && !e.Done {
			token, _ := up.RegistryToken(dir, first.Registry)
			early <- token
		}
	}})
	if got := <-early; got != token {
		t.Errorf("the token during a start is %q, want %q", got, token)
	}
	if again, err := up.RegistryToken(dir, second.Registry); again != token {
		t.Errorf("the token changed with a restart: %v", err)
	}
	if _, err := os.Stat(unfinished); err == nil {
		t.Error("the part of an upload is still there")
	}
	want(t, second.State, digest)
}
