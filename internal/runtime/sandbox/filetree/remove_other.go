//go:build !linux

package filetree

import "os"

// Remove removes a tree. It is not an error if the tree does not exist.
func Remove(dir string) error { return os.RemoveAll(dir) }
