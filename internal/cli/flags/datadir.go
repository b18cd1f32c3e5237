package flags

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

// DataDirFlag names the data directory of a control plane.
type DataDirFlag struct {
	DataDir string `placeholder:"DIR" env:"XPKG_DATA_DIR" help:"Data directory of the control plane. Default is ~/.local/share/xpkg/default."`
}

// Candidates returns the data directories of the control planes that the user may mean, the
// most likely first: the flag alone, or the directories of a kubeconfig or else of
// KUBECONFIG, and the default directory. A directory may not be a data directory.
func (f DataDirFlag) Candidates(kubeconfig string) []string {
	if f.DataDir != "" {
		return []string{f.DataDir}
	}
	var dirs []string
	// The directory of a kubeconfig that `xpkg up` wrote is its data directory.
	for _, file := range filepath.SplitList(cmp.Or(kubeconfig, os.Getenv("KUBECONFIG"))) {
		if real, err := filepath.EvalSymlinks(file); err == nil {
			file = real
		}
		dirs = append(dirs, filepath.Dir(file))
	}
	if dir := datadir.Default(); dir != "" {
		dirs = append(dirs, dir)
	}
	return dirs
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
