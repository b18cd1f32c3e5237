// Package logs writes and reads the logs of package runtimes: one file for each runtime,
// rotated at a size limit, which other processes can read and follow.
package logs

import (
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Folder is the name of the log folder in the folder of a supervisor.
const Folder = "logs"

// ErrNoLog is the code for a runtime without a log.
var ErrNoLog = errcode.Code{
	Name: "NoProgramLog", Class: errcode.NotFound,
	Cause: "No runtime of that name has run here.",
	Fix:   "Check the name; a runtime has a log as soon as it has started once.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrNoLog} }

// validName matches the names of package revisions.
var validName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

const (
	suffix        = ".log"
	rotatedSuffix = ".1"
)

// logPath returns the path of the log of a runtime in the folder of a supervisor, and
// rotatedPath the path of the rotated one.
func logPath(dir, name string) string     { return filepath.Join(dir, Folder, name+suffix) }
func rotatedPath(dir, name string) string { return logPath(dir, name) + rotatedSuffix }
