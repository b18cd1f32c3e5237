package firstgen

import (
	"io/fs"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Folder is the name of the folder that contains a package.
const Folder = ".registry"

// A Location is the place of a package in a file system.
type Location struct {
	// Root is the path of the folder that contains app.yaml.
	Root string
	// CRDs is the path of a folder with CRDs outside of Root; empty unless the package is in source form.
	CRDs string
}

// locations are the possible locations of a package, in search order. The last three are source forms: a
// build copied the CRDs of config/crd into the folder before it built the image.
var locations = []Location{
	{Root: Folder},
	{Root: "stack-package/" + Folder},
	{Root: "extension-package/" + Folder},
	{Root: "config/package/manifests", CRDs: "config/crd"},
	{Root: "config/stack/manifests", CRDs: "config/crd"},
	{Root: "config/stack", CRDs: "config/crd"},
}

// Find locates a package in the root file system of an image or in a repository. It reports an error with the code
// [ErrNoRegistryFolder] if there is none.
func Find(fsys fs.FS) (Location, error) {
	root := -1
	for i, l := range locations {
		switch {
		case !hasContent(fsys, l.Root+"/"+appFile):
			if isDir(fsys, l.Root) && root < 0 {
				root = i
			}
			if isLink(fsys, l.Root) && !isDir(fsys, l.Root) {
				return Location{},
					xpkg.ErrUnreadableFile.New(nil, "%s is a symbolic link that leads out of the folder, or nowhere", l.Root).
						WithDo("Copy the files into the folder %s.", l.Root)
			}
			continue
		case l.CRDs != "" && isDir(fsys, l.CRDs+"/bases"):
			// kustomize builds from this folder; the others contain patches.
			l.CRDs += "/bases"
		case l.CRDs != "" && !isDir(fsys, l.CRDs):
			l.CRDs = ""
		}
		return l, nil
	}
	if root >= 0 {
		// Read reports that app.yaml is missing or empty.
		return Location{Root: locations[root].Root}, nil
	}
	return Location{}, ErrNoRegistryFolder.New(nil, "find the package of the first generation")
}

func isLink(fsys fs.FS, name string) bool {
	info, err := fs.Lstat(fsys, name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

func isDir(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.IsDir()
}

func isFile(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.Mode().IsRegular()
}

// hasContent reports whether name is a regular file that is not empty.
func hasContent(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}
