package registry

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

// listCopyFile is the last list of manifests that is on the disk, in the folder of a repository. No part of the name of a repository can be equal to it. It is a second name
// of the list, or a copy.
//
// olareg replaces the list by a file that is not on the disk yet: some file systems, such as XFS, have an empty list after a loss of power at this moment.
const listCopyFile = "_index.json"

// newListCopyFile is the name of a second name of the list before it replaces the former one.
const newListCopyFile = "." + listCopyFile + "0"

// keepList gives the list of manifests of a repository, whose file with this state is on the disk, its second name. Journals write names in their order, so the second one is
// on the disk before the next list.
func (l *Layouts) keepList(repository string, written fs.FileInfo) error {
	unlock, err := l.lists.Lock(context.Background(), repository)
	if err != nil {
		return err
	}
	defer unlock()
	dir := l.dir(repository)
	path, added := filepath.Join(dir, listCopyFile), filepath.Join(dir, newListCopyFile)
	if info, err := os.Stat(path); err == nil && os.SameFile(info, written) {
		return nil
	}
	if err := os.Remove(added); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if os.Link(filepath.Join(dir, layoutFile), added) != nil {
		return copyList(dir) // The file system has no second names.
	}
	info, err := os.Stat(added)
	if err == nil && os.SameFile(info, written) {
		return os.Rename(added, path)
	}
	return errors.Join(err, os.Remove(added)) // It was replaced; the change that did it keeps it.
}

// saveList writes a copy of the list of manifests of a repository to the disk before a change, unless the last list on the disk is equal.
func (l *Layouts) saveList(repository string) error {
	unlock, err := l.lists.Lock(context.Background(), repository)
	if err != nil {
		return err
	}
	defer unlock()
	dir := l.dir(repository)
	list, err := os.Stat(filepath.Join(dir, layoutFile))
	if isAbsent(err) {
		return nil // The repository is new, or damaged.
	}
	if kept, keptErr := os.Stat(filepath.Join(dir, listCopyFile)); err == nil && keptErr == nil && os.SameFile(list, kept) {
		return nil
	}
	return copyList(dir)
}

// copyList writes a copy of the list of manifests in the folder of a repository to the disk, unless there is an equal one.
func copyList(dir string) error {
	document, err := os.ReadFile(filepath.Join(dir, layoutFile))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, listCopyFile)
	if kept, err := os.ReadFile(path); err == nil && bytes.Equal(kept, document) {
		return nil
	}
	if _, err := parseLayout(document); err != nil {
		return err
	}
	return fileutil.ReplaceFile(path, fileutil.PrivateMode, document)
}

// repairList restores the last list of manifests of a repository that was on the disk if the list is damaged, or missing although there is content. It returns the damage if
// there is no valid one.
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
		err = damageError{errors.New("the file is missing, and the repository has content")}
	case err != nil:
		return err
	default:
		if _, err = parseLayout(document); err == nil {
			return nil // Another request has restored it.
		}
		err = damageError{err}
	}
	kept, failed := os.ReadFile(filepath.Join(dir, listCopyFile))
	if failed != nil && !isAbsent(failed) {
		return failed // It may be valid.
	}
	if failed == nil {
		_, failed = parseLayout(kept)
	}
	if !isMissing {
		err = moveAway(path, err)
	}
	if failed != nil {
		return err
	}
	if failed := fileutil.ReplaceFile(path, fileutil.PrivateMode, kept); failed != nil {
		return failed // The next request restores it.
	}
	l.log.Warn("the list of versions was restored from its copy", "repository", repository, "file", path, "error", err)
	return nil
}
