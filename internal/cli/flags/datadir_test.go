package flags

import (
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
