package registry

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ContentGrace is the time for which the registry of this process keeps new content that nothing refers to, unless its options say otherwise.
const ContentGrace = time.Hour

// RemoveEmpty removes the repositories below a folder that have no manifests and no content that is newer than the grace period, such as those
// whose first push did not end, so that their names are free. olareg must not run: it would make a repository without manifests unusable
// although it has new content.
func RemoveEmpty(root string, grace time.Duration, log *slog.Logger) {
	names, err := repositoriesIn(context.Background(), root)
	if err != nil {
		log.Warn("cannot look for repositories without content", "error", err)
		return
	}
	for _, name := range names {
		dir := filepath.Join(root, filepath.FromSlash(name))
		if !isEmpty(dir, time.Now().Add(-grace)) {
			continue
		}
		if err := removeRepository(dir); err != nil {
			log.Warn("cannot remove a repository without content", "repository", name, "error", err)
		}
	}
}

// uploadsFolder is the folder of a repository in which olareg stores unfinished uploads. No part of the name of a repository can be equal to it.
const uploadsFolder = "_uploads"

// RemoveUploads removes the unfinished uploads below a folder, which a process has left that was killed: no client can continue them. It removes unfinished lists of
// manifests, too. olareg must not run.
func RemoveUploads(root string) error {
	var unfinished []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && name == uploadsFolder:
			unfinished = append(unfinished, path)
			return filepath.SkipDir
		case entry.IsDir() && name == blobsFolder:
			return filepath.SkipDir
		case entry.Type().IsRegular() && isUnfinishedList(name):
			unfinished = append(unfinished, path)
		}
		return nil
	})
	for _, path := range unfinished {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// isUnfinishedList reports whether a name is that of a list of manifests, or of its copy, whose writing has not ended. Both end with random digits.
func isUnfinishedList(name string) bool {
	for _, prefix := range []string{layoutFile + ".", "." + listCopyFile, "." + layoutFile} {
		if digits, ok := strings.CutPrefix(name, prefix); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			return true
		}
	}
	return false
}

// The content of a repository in a folder (OCI image layout, and the uploads of olareg).
var contentFolders = []string{blobsFolder, uploadsFolder}

// isEmpty reports whether a repository has no manifests, and no content that is newer than a time.
func isEmpty(dir string, oldest time.Time) bool {
	document, err := os.ReadFile(filepath.Join(dir, layoutFile))
	if err != nil {
		return false
	}
	if manifests, err := parseLayout(document); err != nil || len(manifests) > 0 {
		return false // The content of a damaged repository stays.
	}
	for _, sub := range contentFolders {
		err := filepath.WalkDir(filepath.Join(dir, sub), func(_ string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.ModTime().After(oldest) {
				err = errNew
			}
			return err
		})
		if err != nil {
			return false
		}
	}
	return true
}

var errNew = errors.New("the content is new")

// removeRepository removes a repository, but not those below it. The file that makes it a repository is removed last, so that an interrupted removal
// is repeated.
func removeRepository(dir string) error {
	for _, sub := range contentFolders {
		if err := os.RemoveAll(filepath.Join(dir, sub)); err != nil {
			return err
		}
	}
	for _, file := range []string{listCopyFile, markerFile, layoutFile} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_ = os.Remove(dir) // It can contain other repositories.
	return nil
}
