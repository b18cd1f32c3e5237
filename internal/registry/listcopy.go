package registry

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

// listCopyFile is the copy of the list of manifests in the folder of a repository. No part of the name of a repository can be equal to it.
const listCopyFile = "_index.json"

// saveList writes a copy of the list of manifests of a repository to the disk, unless there is an equal one. olareg replaces the list by a file that is not on
// the disk yet: some file systems, such as XFS, have an empty list after a loss of power at this moment. The copy then has the state before the change.
func (l *Layouts) saveList(repository string) error {
	unlock, err := l.lists.Lock(context.Background(), repository)
	if err != nil {
		return err
	}
	defer unlock()
	dir := l.dir(repository)
	document, err := os.ReadFile(filepath.Join(dir, layoutFile))
	if isAbsent(err) {
		return nil // The repository is new, or damaged.
	}
	if err == nil {
		_, err = parseLayout(document)
	}
	if err != nil {
		return err
	}
	path := filepath.Join(dir, listCopyFile)
	if saved, err := os.ReadFile(path); err == nil && bytes.Equal(saved, document) {
		return nil
	}
	return fileutil.ReplaceFile(path, fileutil.PrivateMode, document)
}

// repairList restores the list of manifests of a repository from its copy if the list is damaged, or missing although there is content. It returns the damage of a
// list that has no valid copy.
func (l *Layouts) repairList(repository string) error {
	unlock, err := l.lists.Lock(context.Background(), repository)
	if err != nil {
		return err
	}
	defer unlock()
	dir := l.dir(repository)
	path := filepath.Join(dir, layoutFile)
	document, err := os.ReadFile(path)
	isMissing := isAbsent(err)
	switch {
	case isMissing:
		err = errors.New("the file is missing, and the repository has content")
	case err != nil:
		return err
	default:
		if _, err = parseLayout(document); err == nil {
			return nil // Another request has restored it.
		}
	}
	saved, failed := os.ReadFile(filepath.Join(dir, listCopyFile))
	if failed == nil {
		_, failed = parseLayout(saved)
	}
	if !isMissing {
		err = moveAway(path, err)
	}
	if failed == nil {
		failed = fileutil.ReplaceFile(path, fileutil.PrivateMode, saved)
	}
	if failed != nil {
		return err
	}
	l.log.Warn("the list of versions was restored from its copy", "repository", repository, "file", path, "error", err)
	return nil
}
