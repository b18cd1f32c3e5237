// Command generate writes the generated files of the Helm chart into its folder.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/bootstrap/chart"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER")
		os.Exit(3)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write replaces the generated files.
func write(dir string) error {
	files, err := chart.Files()
	if err != nil {
		return err
	}
	for _, folder := range chart.Folders() {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, folder)), os.MkdirAll(filepath.Join(dir, folder), 0o755))
	}
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), content, 0o644))
	}
	return err
}
