package resolve

import (
	"slices"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// What can be wrong with what a package needs. All of these are of the class
// NotFound: there may be another version with which they do not matter.
var (
	ErrUnqualified = failure.Register(failure.Code{
		Name: "UnqualifiedDependency", Class: failure.NotFound,
		Cause: "A package needs another one and does not say in which registry that is. Guessing would let anybody who owns the name in a public registry answer.",
		Fix:   "Ask the author to name the registry, or say with --default-registry which one is meant.",
	})
	ErrTagMoved = failure.Register(failure.Code{
		Name: "TagMoved", Class: failure.NotFound,
		Cause: "A version is asked for by its tag and its digest. The tag stands for other content now, and what the digest names is gone.",
		Fix:   "Find out why the tag was moved. To accept what it stands for now, ask for that digest.",
	})
	ErrUnusable = failure.Register(failure.Code{
		Name: "UnusableVersion", Class: failure.NotFound,
		Cause: "A version is no package that can be installed: its manifest or its metadata is not valid.",
		Fix:   "Ask for another version, or ask its author to publish it again.",
	})
)

// ErrLookup is the failure of a look-up for want of something that is no package.
var ErrLookup = failure.Register(failure.Code{
	Name: "PackageLookup", Class: failure.Unavailable,
	Cause: "A package cannot be looked up, because something is missing that is needed to ask its registry, such as a pull secret.",
	Fix:   "See what the message names.",
})

// absences are what says that a version, or a repository, is not there.
var absences = []failure.Code{
	oci.ErrRepositoryNotFound, oci.ErrTagNotFound, oci.ErrManifestNotFound, oci.ErrBlobMissing, oci.ErrPlatformNotFound, ErrUnqualified, ErrTagMoved, ErrUnusable,
}

// lookedUp tells a version that is not there, of which the solver does without, from
// something else that is not there.
func lookedUp(err error, ref oci.Reference) error {
	if !isNotFound(err) || slices.ContainsFunc(absences, func(c failure.Code) bool { return c.Is(err) }) {
		return err
	}
	return ErrLookup.New(err, "cannot look %s up", ref)
}

func isNotFound(err error) bool {
	return err != nil && failure.From(err).Code.Class.Name == failure.NotFound.Name
}

// flaws are what can be wrong with the content of a version itself.
var flaws = []failure.Code{
	oci.ErrNotAPackage, oci.ErrInvalidManifest, oci.ErrEmptyIndex, oci.ErrAmbiguousPlatform, oci.ErrIndexTooDeep, oci.ErrAmbiguousBaseLayer,
	oci.ErrForeignLayer, oci.ErrInvalidDigest, oci.ErrUnsupportedDigest, oci.ErrBrokenLayer, oci.ErrCompressionMismatch, oci.ErrNotATar,
	oci.ErrNoPackageYAML, oci.ErrNotRegularFile, oci.ErrDuplicateEntry,
}

// unusable tells a version that is wrong in itself, and is set aside, from a failure
// to read it, which ends everything: otherwise who keeps a version from being read
// decides that an older one is installed.
func unusable(err error) bool {
	if err == nil {
		return false
	}
	if len(format.Findings(err)) > 0 {
		class := failure.From(err).Code.Class.Name
		return class == failure.Invalid.Name || class == failure.Unsupported.Name
	}
	return slices.ContainsFunc(flaws, func(c failure.Code) bool { return c.Is(err) })
}

// vanished reports whether a digest is not in its repository any more.
func vanished(err error) bool { return oci.ErrManifestNotFound.Is(err) }
