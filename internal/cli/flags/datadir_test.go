package flags

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRelativeDataDirIsMadeAbsolute(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	if got, err := (DataDirFlag{DataDir: "data"}).Dir(); err != nil || got != filepath.Join(work, "data") {
		t.Errorf("got %s, %v", got, err)
	}
}

// The directory of a stopped control plane is that of its kubeconfig, not the default one, in which another control
// plane would start.
func TestRunningDirOfAStoppedControlPlane(t *testing.T) {
	home, plane, other := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("XDG_DATA_HOME", home)
	if err := os.WriteFile(
		filepath.Join(plane, "version.json"),
		[]byte(`{"kind":"xpkg control plane","layout":1,"created":"2026-01-02T15:04:05Z"}`), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	for kubeconfig, want := range map[string]string{
		filepath.Join(plane, "kubeconfig"): plane,
		filepath.Join(other, "kubeconfig"): filepath.Join(home, "xpkg", "default"),
	} {
		t.Setenv("KUBECONFIG", kubeconfig)
		if got, err := (DataDirFlag{}).RunningDir(); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", kubeconfig, got, err, want)
		}
	}
}
