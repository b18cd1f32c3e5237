package dependencies

import (
	"context"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// RootArgs select the packages to resolve.
type RootArgs struct {
	Packages []string `arg:"" optional:"" name:"package" help:"Packages to resolve: the folder of a package or a .xpkg file, for its dependencies; REPOSITORY:TAG; REPOSITORY@CONSTRAINT such as xpkg.crossplane.io/crossplane-contrib/provider-nop@>=v0.4.0, or REPOSITORY@sha256:DIGEST. Default is this folder; if it is not a package, the roots of the lock file."`
}

// roots returns the roots that the arguments select. It returns none if there are no
// arguments and the current folder is not a package. A dependency in a folder without a
// registry is in the default registry, if there is one.
func (a RootArgs) roots(env *terminal.Env, registry string) ([]dependency.Root, error) {
	what := a.Packages
	if len(what) == 0 {
		if !location.IsSource(".") {
			return nil, nil
		}
		what = []string{"."}
	}
	out := []dependency.Root{}
	for _, w := range what {
		roots, err := rootsOf(env, w, registry)
		if err != nil {
			return nil, err
		}
		out = append(out, roots...)
	}
	return out, nil
}

// rootsOf returns the roots of one argument. Paths are those of locations.
func rootsOf(env *terminal.Env, s, registry string) ([]dependency.Root, error) {
	switch {
	case location.IsPackageFile(s):
		return fileRoots(env, s, registry)
	case location.IsPath(s):
		return folderRoots(env.Context, s, registry)
	}
	name, constraint, constrained := strings.Cut(s, "@")
	if !constrained || strings.HasPrefix(constraint, "sha256:") {
		ref, err := flags.ParseReference(s)
		if err != nil {
			return nil, err
		}
		root := dependency.Root{Package: ref.Name(), Constraint: ref.Identifier()}
		if ref.Tag != "" {
			root.Constraint, root.Exact = strings.TrimPrefix(ref.String(), ref.Name()+":"), true
		}
		return []dependency.Root{root}, nil
	}
	ref, err := oci.ParseReference(name, oci.ParseOptions{DefaultRegistry: flags.DefaultRegistry, AllowUntagged: true})
	if err != nil {
		return nil, err
	}
	if ref.Tag != "" {
		return nil, terminal.ErrUsage.New(nil, "%s has both a tag and a constraint", s).WithDo("Remove one of them.")
	}
	if err := version.CheckConstraint(constraint, false); err != nil {
		return nil, xpkg.ErrInvalidConstraint.New(err, "cannot read %q", constraint)
	}
	return []dependency.Root{{Package: ref.Name(), Constraint: constraint}}, nil
}

// folderRoots returns the dependencies and optional dependencies of the package in a folder.
func folderRoots(ctx context.Context, dir, registry string) ([]dependency.Root, error) {
	meta, err := location.ReadMeta(ctx, dir)
	if err != nil {
		return nil, err
	}
	return metaRoots(meta, registry)
}

// fileRoots returns the dependencies and optional dependencies of the package in a file.
func fileRoots(env *terminal.Env, path, registry string) ([]dependency.Root, error) {
	stream, err := location.ReadStream(env, path, flags.LimitFlags{})
	if err != nil {
		return nil, err
	}
	meta, err := xpkg.ReadMeta(stream, xpkg.ReadOptions{})
	if err != nil {
		return nil, err
	}
	return metaRoots(meta, registry)
}

// metaRoots returns the dependencies and optional dependencies of a package.
func metaRoots(meta xpkg.Meta, registry string) ([]dependency.Root, error) {
	out := []dependency.Root{}
	for _, d := range meta.Dependencies() {
		ref, err := oci.ParseReference(d.Package, oci.ParseOptions{AllowUntagged: true, DefaultRegistry: registry})
		if err != nil {
			return nil,
				resolver.ErrUnqualified.New(err, "the registry of %s, a dependency of %s, is unknown", d.Package, meta.Name)
		}
		out = append(out, dependency.Root{Package: ref.Name(), Constraint: d.Constraint, Optional: d.Optional, By: meta.Name})
	}
	for _, k := range meta.Kinds {
		out = append(out, dependency.Root{By: meta.Name, CRD: k.String()})
	}
	return out, nil
}
