package flags

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

// DataDirFlag names the data directory of a control plane.
type DataDirFlag struct {
	DataDir string `placeholder:"DIR" env:"XPKG_DATA_DIR" config:"" repeat:"never" help:"Data directory of the control plane. Default is ~/.local/share/xpkg/default; for a control plane that runs, the folder of KUBECONFIG."`
}

// Candidates returns the possible data directories, the most likely first: only the flag if
// it is set, and otherwise the directories of a kubeconfig or of KUBECONFIG, and the
// default directory. A candidate need not be a data directory.
func (f DataDirFlag) Candidates(kubeconfig string) []string {
	if f.DataDir != "" {
		return []string{f.DataDir}
	}
	var dirs []string
	for _, file := range filepath.SplitList(cmp.Or(kubeconfig, os.Getenv("KUBECONFIG"))) {
		dirs = append(dirs, datadir.OfKubeconfig(file))
	}
	if dir := datadir.Default(); dir != "" {
		dirs = append(dirs, dir)
	}
	return dirs
}

// RunningDir returns the data directory of the flag. Without it, it returns the first candidate in which a control
// plane runs, the first one with a stopped control plane, or the default directory.
func (f DataDirFlag) RunningDir() (string, error) {
	if f.DataDir == "" {
		for _, running := range []bool{true, false} {
			if dir := f.candidate(running); dir != "" {
				return dir, nil
			}
		}
	}
	return f.Dir()
}

// running returns the first candidate in which a control plane runs, or "".
func (f DataDirFlag) running() string { return f.candidate(true) }

// candidate returns the first candidate with a control plane that runs, or that is stopped, or "".
func (f DataDirFlag) candidate(running bool) string {
	for _, dir := range f.Candidates("") {
		if report, err := up.Status(dir); err == nil && report.Running == running && (running || !report.Created.IsZero()) {
			return report.DataDir
		}
	}
	return ""
}

// Dir returns the data directory of the flag, or the default one.
func (f DataDirFlag) Dir() (string, error) {
	if f.DataDir != "" {
		// Runtimes start in another folder, so the path must be absolute.
		dir, err := filepath.Abs(f.DataDir)
		if err != nil {
			return "", terminal.ErrUsage.New(err, "cannot find the data directory %s", f.DataDir)
		}
		return dir, nil
	}
	if dir := datadir.Default(); dir != "" {
		return dir, nil
	}
	return "", terminal.ErrUsage.New(nil, "no home folder is available for the data of the control plane").
		WithDo("Set a directory with --data-dir.")
}
