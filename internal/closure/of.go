package closure

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// Of is the node of a package object, which needs what is given. There is none for a
// package that is being deleted, or that is not named by a repository.
func Of(p v1.Package, needs []format.Dependency) (Node, bool) {
	return At(p, p.PackageSpec().Package, Content(p), needs)
}

// At is Of for a package that stands for an image and the content with a digest,
// whatever its spec and its status say. A digest in the image comes first.
func At(p v1.Package, image string, content oci.Digest, needs []format.Dependency) (Node, bool) {
	spec := p.PackageSpec()
	ref, err := oci.ParseReference(image, oci.ParseOptions{})
	if err != nil || p.GetDeletionTimestamp() != nil {
		return Node{}, false
	}
	if !ref.Digest.IsZero() {
		content = ref.Digest
	}
	return Node{
		Kind: p.PackageKind(), Name: p.GetName(), Asked: spec.Package, Skip: spec.SkipDependencyResolution, Made: IsMade(p), Paused: v1.IsPaused(p),
		Package: lockfile.Package{
			Package: ref.Name(), Version: ref.Tag, Digest: content, Kind: format.Kind(p.PackageKind()), Dependencies: lockfile.Needs(needs),
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

// Entry is what the Lock says of what a package stands for, if it says anything.
func Entry(p v1.Package, lock []v1beta1.LockPackage) (v1beta1.LockPackage, bool) {
	back := revision.PolicyOf(p).Back
	ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{})
	if err != nil {
		return v1beta1.LockPackage{}, false
	}
	at := slices.IndexFunc(lock, func(l v1beta1.LockPackage) bool {
		if back != "" {
			return l.Name == back
		}
		return l.Source == ref.Name() && (l.Version == ref.Tag || l.Version == ref.Digest.String())
	})
	if at < 0 {
		return v1beta1.LockPackage{}, false
	}
	return lock[at], true
}

// Locked is what a package needs as the Lock says, and whether that says anything of
// it.
func Locked(p v1.Package, lock []v1beta1.LockPackage) (needs []format.Dependency, known bool) {
	entry, known := Entry(p, lock)
	for _, d := range entry.Dependencies {
		needs = append(needs, format.Dependency{Package: d.Package, Constraint: d.Constraints})
	}
	for _, d := range entry.OptionalDependencies {
		needs = append(needs, format.Dependency{Package: d.Package, Constraint: d.Constraints, Optional: true})
	}
	return needs, known
}

// AnnotationInheritSecrets with the value "true" on a package passes its pull secrets
// to the packages that are installed because it needs them.
const AnnotationInheritSecrets = "xpkg.dev/inherit-pull-secrets"

// Inherited are the pull secrets that a package passes on.
func Inherited(p v1.Package) []corev1.LocalObjectReference {
	if p.GetAnnotations()[AnnotationInheritSecrets] != "true" {
		return nil
	}
	return p.PackageSpec().PackagePullSecrets
}
