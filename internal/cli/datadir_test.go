package cli

import (
	"path/filepath"
	"testing"
)

func TestRelativeDataDirIsMadeAbsolute(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	if got, err := (dataDirFlag{DataDir: "data"}).dir(); err != nil || got != filepath.Join(work, "data") {
		t.Errorf("got %s, %v", got, err)
	}
}
