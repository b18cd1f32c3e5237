package graph

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// NodeFromPackage returns the node of a package with the given dependencies. It returns none for a package that is
// being deleted, or whose reference is invalid.
func NodeFromPackage(p v1.Package, needs []dependency.Dependency) (Node, bool) {
	return NodeFromImage(p, p.PackageSpec().Package, CurrentDigest(p), needs)
}

// NodeFromImage is like NodeFromPackage, for another image and content than those in the spec and the
// status of the package. A digest in the image takes precedence.
func NodeFromImage(p v1.Package, image string, content oci.Digest, needs []dependency.Dependency) (Node, bool) {
	spec := p.PackageSpec()
	ref, err := oci.ParseReference(image, oci.ParseOptions{})
	if err != nil || p.GetDeletionTimestamp() != nil {
		return Node{}, false
	}
	if !ref.Digest.IsZero() {
		content = ref.Digest
	}
	return Node{
		Kind: p.PackageKind(), Name: p.GetName(), Requested: spec.Package, SkipDependencies: spec.SkipDependencyResolution,
		AutoInstalled: IsAutoInstalled(p), FollowsDependents: FollowsDependents(p), Paused: v1.IsPaused(p),
		Package: lockfile.Package{
			Repository: ref.Name(), Version: ref.Tag, Digest: content, Kind: xpkg.Kind(p.PackageKind()),
			Dependencies: append(lockfile.Dependencies(needs), KindProviders(p)...),
		},
	}, true
}

// CurrentDigest returns the digest of the content of a package, or zero if it is unknown.
func CurrentDigest(p v1.Package) oci.Digest {
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

// LockEntry returns the Lock entry of the current content of a package, if there is one.
func LockEntry(p v1.Package, lock []v1beta1.LockPackage) (v1beta1.LockPackage, bool) {
	back := revision.PolicyOf(p).Back
	ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{})
	if err != nil {
		return v1beta1.LockPackage{}, false
	}
	at := slices.IndexFunc(lock, func(l v1beta1.LockPackage) bool {
		if back != "" {
			return l.Name == back
		}
		return l.Name == p.PackageStatus().CurrentRevision && locks(l, ref)
	})
	if at < 0 {
		return v1beta1.LockPackage{}, false
	}
	return lock[at], true
}

// locks reports whether an entry of the Lock is for a reference. The version of an entry is the tag, or the digest;
// another package manager writes the digest also if there is a tag.
func locks(entry v1beta1.LockPackage, ref oci.Reference) bool {
	return (entry.Version == ref.Tag || entry.Version == ref.Digest.String()) &&
		oci.SameRepository(entry.Source, ref.Name())
}

// LockedDependencies returns the dependencies of a package in the Lock, and whether the Lock contains them.
func LockedDependencies(p v1.Package, lock []v1beta1.LockPackage) (dependencies []dependency.Dependency, known bool) {
	entry, known := LockEntry(p, lock)
	return DependenciesFromLock(entry), known
}

// Dependencies returns the dependencies of the content of an image, or nil if they are unknown.
type Dependencies func(image string, content oci.Digest) []dependency.Dependency

// DependenciesInLock returns the dependencies of contents as the Lock lists them.
func DependenciesInLock(lock []v1beta1.LockPackage) Dependencies {
	return func(image string, _ oci.Digest) []dependency.Dependency {
		ref, err := oci.ParseReference(image, oci.ParseOptions{})
		if err != nil {
			return nil
		}
		for _, entry := range lock {
			if locks(entry, ref) {
				return DependenciesFromLock(entry)
			}
		}
		return nil
	}
}

// annotationInheritSecrets with the value "true" on a package passes its pull secrets to the packages that are
// installed as its dependencies.
const annotationInheritSecrets = "xpkg.dev/inherit-pull-secrets"

// inheritedPullSecrets returns the pull secrets that a package passes to its dependencies.
func inheritedPullSecrets(p v1.Package) []corev1.LocalObjectReference {
	if p.GetAnnotations()[annotationInheritSecrets] != "true" {
		return nil
	}
	return p.PackageSpec().PackagePullSecrets
}
