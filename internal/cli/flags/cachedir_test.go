package flags

import (
	"path/filepath"
	"strings"
	"testing"
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
