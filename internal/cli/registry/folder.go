package registry

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// readFolder reads the packages of a folder: files REPOSITORY/TAG.xpkg, and folders REPOSITORY/TAG with the
// source of a package.
func (c *exportCmd) readFolder(env *terminal.Env, dir string) ([]folder.Version, error) {
	var out []folder.Version
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || env.Context.Err() != nil {
			return err
		}
		v, ok := versionAt(dir, name, entry)
		if !ok {
			return nil
		}
		if entry.IsDir() {
			err = c.readSources(env.Context, name, &v)
		} else {
			err = c.readArtifact(env, location.Location{Kind: location.File, Path: name}, &v)
		}
		if err != nil {
			return err
		}
		out = append(out, v)
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, terminal.ErrUsage.New(nil, "the folder %s contains no package", terminal.Safe(dir)).
			WithDo("Place packages as REPOSITORY/TAG.xpkg below it.")
	}
	return out, nil
}

// versionAt returns the version that a path names; false if there is no package.
func versionAt(dir, name string, entry fs.DirEntry) (folder.Version, bool) {
	rel, err := filepath.Rel(dir, name)
	if err != nil {
		return folder.Version{}, false
	}
	rel = filepath.ToSlash(rel)
	repository, tag := path.Split(rel)
	repository = strings.TrimSuffix(repository, "/")
	if entry.IsDir() {
		return folder.Version{Repository: repository, Tag: tag}, repository != "" && location.IsSource(name)
	}
	tag, ok := strings.CutSuffix(tag, ".xpkg")
	return folder.Version{Repository: repository, Tag: tag}, ok && repository != "" && entry.Type().IsRegular()
}

// readSources reads the package in a folder of sources.
func (c *exportCmd) readSources(ctx context.Context, dir string, v *folder.Version) error {
	files, err := location.FolderFlags{}.Read(ctx, dir, c.StreamLimits())
	if err != nil {
		return err
	}
	if v.Package, err = files.Package(xpkg.ReadOptions{Limits: c.StreamLimits()}); err != nil {
		return err
	}
	v.Examples = docs.ExamplesOf(files.ExampleDocuments)
	return nil
}
