package child

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Variable is the environment variable that names the program of the control plane.
const Variable = "XPKG_CONTROLPLANE"

// Name returns the file name of the program of the control plane.
func Name() string {
	if runtime.GOOS == "windows" {
		return "xpkg-controlplane.exe"
	}
	return "xpkg-controlplane"
}

// Find returns the path of the program of the control plane: the value of the environment variable
// or, if it is not set, the file in the first of the folders that contains one. It fails with
// ErrMissing if there is none.
func Find(environment func(string) string, folders ...string) (string, error) {
	if path := environment(Variable); path != "" {
		if err := executable(path); err != nil {
			return "", ErrMissing.New(err, "%s does not name a program", Variable)
		}
		return path, nil
	}
	for _, folder := range folders {
		path := filepath.Join(folder, Name())
		if executable(path) == nil {
			return path, nil
		}
	}
	return "",
		ErrMissing.New(nil, "cannot find the program %s in %s", Name(), strings.Join(slices.Compact(folders), " or "))
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0 {
		return &os.PathError{Op: "execute", Path: path, Err: errors.New("not an executable file")}
	}
	return nil
}
