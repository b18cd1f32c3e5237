package fileutil

import "strings"

// A ReplaceableError reports that another user can replace a directory or a symbolic link on a
// path.
type ReplaceableError struct {
	// At is the directory that the user can change, or the link.
	At          string
	reason, fix string
}

func (e *ReplaceableError) Error() string { return e.reason }

// Do returns what to do about it. The option, such as "--data-dir", selects another
// directory.
func (e *ReplaceableError) Do(option string) string {
	return strings.ToUpper(e.fix[:1]) + e.fix[1:] + " with " + option + "."
}
