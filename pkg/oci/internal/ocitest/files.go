package ocitest

import (
	"os"
	"path/filepath"
	"testing"
)

// FilesUnder lists the regular files below a folder, whose path is joined from parts.
func FilesUnder(t *testing.T, parts ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(parts...), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
