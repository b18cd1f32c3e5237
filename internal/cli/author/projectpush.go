package author

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// pushedPackage is a package with its destination.
type pushedPackage struct {
	oci.Artifact
	ref oci.Reference
}

// defaultFiles returns the only package file in this folder, or the files of the packages of one Project.
func (c *PushCmd) defaultFiles(env *terminal.Env) (_ []string, err error) {
	found, err := filepath.Glob("*.xpkg")
	if err != nil || len(found) < 2 {
		file, err := location.OnePackageFile(".")
		return []string{file}, err
	}
	archives, closeAll, err := c.open(env, found)
	defer func() { err = errors.Join(err, closeAll()) }()
	if err == nil && c.parts(env, archives).configuration >= 0 {
		return found, nil
	}
	_, err = location.OnePackageFile(".")
	return nil, err
}

// open opens package files.
func (c *PushCmd) open(
	env *terminal.Env, files []string,
) (archives []*archive.Archive, closeAll func() error, err error) {
	closeAll = func() error {
		var errs []error
		for _, a := range archives {
			errs = append(errs, a.Close())
		}
		return errors.Join(errs...)
	}
	for _, file := range files {
		a, err := location.OpenArchive(env, file, c.ArchiveLimit(), c.ImageLimits())
		if err != nil {
			return nil, closeAll, err
		}
		archives = append(archives, a)
	}
	return archives, closeAll, nil
}

// projectParts are the packages of one Project.
type projectParts struct {
	// configuration is the index of the Configuration, and -1 if the packages are not those of one Project.
	configuration int
	// dependencies are the dependencies of the Configuration on the other packages, by their indexes.
	dependencies map[int]dependency.Dependency
}

// readParts finds the Configuration among packages, each of the others being a Function that it depends on.
func (c *PushCmd) readParts(env *terminal.Env, archives []*archive.Archive) (projectParts, error) {
	parts := projectParts{configuration: -1, dependencies: map[int]dependency.Dependency{}}
	var meta xpkg.Meta
	for i, a := range archives {
		m, err := c.readMeta(env, a)
		if err != nil {
			return parts, err
		}
		if m.Kind == xpkg.Configuration {
			if parts.configuration >= 0 {
				return projectParts{configuration: -1}, nil
			}
			parts.configuration, meta = i, m
		}
	}
	for i, a := range archives {
		d := slices.IndexFunc(meta.DependsOn, func(d dependency.Dependency) bool {
			return d.Kind == string(xpkg.Function) && d.Constraint == a.Digest().String()
		})
		switch {
		case i == parts.configuration:
		case d < 0:
			return projectParts{configuration: -1}, nil
		default:
			parts.dependencies[i] = meta.DependsOn[d]
		}
	}
	return parts, nil
}

func (c *PushCmd) readMeta(env *terminal.Env, a oci.Artifact) (xpkg.Meta, error) {
	m, err := oci.FindManifest(env.Context, a, oci.Platform{}, c.ImageLimits())
	if err != nil {
		return xpkg.Meta{}, err
	}
	stream, err := packagestream.Read(env.Context, a, m, packagestream.Options{
		Limits: c.ImageLimits(), Format: c.StreamLimits(),
	})
	if err != nil {
		return xpkg.Meta{}, err
	}
	return xpkg.ReadMeta(stream, xpkg.ReadOptions{Limits: c.StreamLimits()})
}

// parts returns the packages of a Project. Archives that cannot be read as packages can be the images of several
// platforms.
func (c *PushCmd) parts(env *terminal.Env, archives []*archive.Archive) projectParts {
	if len(archives) > 1 {
		if parts, err := c.readParts(env, archives); err == nil {
			return parts
		}
	}
	return projectParts{configuration: -1}
}

// destinations returns what is pushed, in order: one package, or the Functions of a Project before its Configuration.
func (c *PushCmd) destinations(
	env *terminal.Env, archives []*archive.Archive, parts projectParts, ref oci.Reference,
) ([]pushedPackage, error) {
	if parts.configuration < 0 {
		a, err := c.join(env, archives)
		return []pushedPackage{{a, ref}}, err
	}
	var out []pushedPackage
	for i, a := range archives {
		if i == parts.configuration {
			continue
		}
		to, err := functionDestination(parts.dependencies[i].Package, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, pushedPackage{a, to})
	}
	configuration, err := annotate(env.Context, archives[parts.configuration], c.OCIAnnotation, c.ImageLimits())
	return append(out, pushedPackage{configuration, ref}), err
}

// functionDestination returns the reference of a Function in its repository, on which the Configuration depends.
func functionDestination(repository string, ref oci.Reference) (oci.Reference, error) {
	to, err := oci.ParseReference(repository, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return to, err
	}
	if !strings.HasPrefix(to.Name(), ref.Name()+"_") {
		return to, terminal.ErrUsage.New(
			nil, "the Configuration depends on %s, which is not beside %s", to.Name(), ref.Name(),
		).WithDo("Push the Project to its own repository, or build it with `xpkg build --repository %s`.", ref.Name())
	}
	to.Tag = ref.Tag
	return to, nil
}
