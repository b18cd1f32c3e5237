package datadir

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The command for the next start repeats the flags of the last one. A directory without them, or with a damaged file, needs none.
func TestStartCommandRepeatsFlags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plane")
	dir, err := Open(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	check := func(want string) {
		t.Helper()
		if got := StartCommand(path, "--detach"); got != "xpkg up --detach --data-dir "+path+want {
			t.Errorf("got %s, want %q", got, want)
		}
	}
	check("")
	if err := dir.SaveFlags([]string{"--package-runtime", "Provider=Process;Function=None", "--namespaced"}); err != nil {
		t.Fatal(err)
	}
	check(" --package-runtime 'Provider=Process;Function=None' --namespaced")
	if err := os.WriteFile(dir.File(flagsName), []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	check("")
	if err := dir.SaveFlags(nil); err != nil {
		t.Fatal(err)
	}
	check("")
}
