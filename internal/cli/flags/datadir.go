package flags

import (
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

// DataDirFlag names the data directory of a control plane.
type DataDirFlag struct {
	DataDir string `placeholder:"DIR" env:"XPKG_DATA_DIR" help:"Data directory of the control plane. Default is ~/.local/share/xpkg/default."`
}

// Dir returns the data directory of the flag, or the default one.
func (f DataDirFlag) Dir() (string, error) {
	if f.DataDir != "" {
		// Runtimes do not start in this process's folder, so no relative path may
		// reach them.
		dir, err := filepath.Abs(f.DataDir)
		if err != nil {
			return "", terminal.ErrUsage.New(err, "cannot find the data directory %s", f.DataDir)
		}
		return dir, nil
	}
	if dir := datadir.Default(); dir != "" {
		return dir, nil
	}
	return "", terminal.ErrUsage.New(nil, "there is no home folder for the data of the control plane").WithDo("Set a folder with --data-dir.")
}
