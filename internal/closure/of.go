package closure

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// LabelMade with the value "true" is on packages that were installed because others
// need them.
const LabelMade = "xpkg.dev/dependency"

// AnnotationFor on such a package names those for whom it was installed.
const AnnotationFor = "xpkg.dev/installed-for"

// Of is the node of a package object, which needs what is given. There is none for a
// package that is being deleted, or that is not named by a repository.
func Of(p v1.Package, needs []format.Dependency) (Node, bool) {
	spec := p.PackageSpec()
	ref, err := oci.ParseReference(spec.Package, oci.ParseOptions{})
	if err != nil || p.GetDeletionTimestamp() != nil {
		return Node{}, false
	}
	return Node{
		Kind: p.PackageKind(), Name: p.GetName(), Skip: spec.SkipDependencyResolution, Made: p.GetLabels()[LabelMade] == "true",
		Package: lockfile.Package{
			Package: ref.Name(), Version: ref.Tag, Digest: Content(p), Kind: format.Kind(p.PackageKind()), Dependencies: lockfile.Needs(needs),
		},
	}, true
}

// Content is the digest that a package stands for, as far as that is known.
func Content(p v1.Package) oci.Digest {
	spec, status := p.PackageSpec(), p.PackageStatus()
	if ref, err := oci.ParseReference(spec.Package, oci.ParseOptions{}); err == nil && !ref.Digest.IsZero() {
		return ref.Digest
	}
	if status.CurrentIdentifier != spec.Package {
		return oci.Digest{}
	}
	d, err := oci.ParseDigest(status.ResolvedDigest)
	if err != nil {
		return oci.Digest{}
	}
	return d
}
