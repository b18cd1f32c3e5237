package archive

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// filesUnder lists the regular files of a store's folder.
func filesUnder(t *testing.T, s *store.Store, folder string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(s.Dir(), folder), func(path string, d os.DirEntry, err error) error {
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
