package flags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

// A user without a home folder has a package cache of its own.
func TestCacheOfAUserWithoutHome(t *testing.T) {
	temp := t.TempDir()
	for name, value := range map[string]string{"HOME": "", "XDG_CACHE_HOME": "", "TMPDIR": temp, "XDG_DATA_HOME": ""} {
		t.Setenv(name, value)
	}
	dir := DefaultCacheDir()
	if filepath.Dir(dir) != temp || !strings.HasPrefix(filepath.Base(dir), "xpkg-packages-") {
		t.Errorf("the cache is %s", dir)
	}
	packages, err := CacheFlags{}.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := packages.Close(); err != nil {
		t.Error(err)
	}
}

// Commands use the package cache of the control plane that KUBECONFIG selects while it runs, as the other commands use
// that control plane.
func TestCacheOfTheControlPlaneOfKubeconfig(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{"XDG_CACHE_HOME": home, "XDG_DATA_HOME": home} {
		t.Setenv(name, value)
	}
	plane, err := datadir.Open(filepath.Join(t.TempDir(), "plane"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(plane.Cache(), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", plane.File("kubeconfig"))
	if dir, err := (CacheFlags{}).dir(); err != nil || dir != filepath.Join(plane.Cache(), PackagesDir) {
		t.Errorf("the cache of the control plane is %s, %v", dir, err)
	}
	if err := plane.Close(); err != nil {
		t.Fatal(err)
	}
	if dir, err := (CacheFlags{}).dir(); err != nil || dir != filepath.Join(home, "xpkg", PackagesDir) {
		t.Errorf("the cache without a control plane is %s, %v", dir, err)
	}
}
