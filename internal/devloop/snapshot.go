package devloop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrTooManyFiles is the code for folders that are too large to be watched.
var ErrTooManyFiles = errcode.Code{
	Name: "TooManyFiles", Class: errcode.Limit,
	Cause: "The folders that `xpkg dev` watches have too many files.",
	Fix:   "Name the folder of the package, or those with its sources with --watch.",
}

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrTooManyFiles} }

// maxFiles is the maximum number of watched files.
const maxFiles = 100_000

// Snapshot returns a text that identifies the names, sizes and times of the files in folders. It ignores hidden files
// and folders, package files, logs, and the targets of links.
func Snapshot(folders []string) (string, error) {
	hash, files := sha256.New(), 0
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if path != folder && isIgnored(d) {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if !d.Type().IsRegular() {
				return nil
			}
			if files++; files > maxFiles {
				return ErrTooManyFiles.New(nil, "%s has more than %d files", folder, maxFiles)
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(hash, "%q %d %d %o\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// isIgnored reports whether a change of a file or folder causes no build. The output of the loop itself can be a log in
// the folder.
func isIgnored(d fs.DirEntry) bool {
	if d.IsDir() {
		return strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"
	}
	return strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{".xpkg", ".log"}, filepath.Ext(d.Name()))
}
