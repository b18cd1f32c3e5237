package resolver

import (
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// What can be wrong with what a package needs. All of these are of the class
// NotFound: there may be another version with which they do not matter.
var (
	ErrUnqualified = errcode.Code{
		Name: "UnqualifiedDependency", Class: errcode.NotFound,
		Cause: "A package needs another one and does not say in which registry that is. Guessing would let anybody who owns the name in a public registry answer.",
		Fix:   "Ask the author to name the registry, or say with --default-registry which one is meant.",
	}
	ErrTagMoved = errcode.Code{
		Name: "TagMoved", Class: errcode.NotFound,
		Cause: "A version is asked for by its tag and its digest. The tag stands for other content now, and what the digest names is gone.",
		Fix:   "Find out why the tag was moved. To accept what it stands for now, ask for that digest.",
	}
	ErrUnusable = errcode.Code{
		Name: "UnusableVersion", Class: errcode.NotFound,
		Cause: "A version is no package that can be installed: its manifest or its metadata is not valid.",
		Fix:   "Ask for another version, or ask its author to publish it again.",
	}
)

// ErrLookup is the failure of a look-up for want of something that is no package.
var ErrLookup = errcode.Code{
	Name: "PackageLookup", Class: errcode.Unavailable,
	Cause: "A package cannot be looked up, because something is missing that is needed to ask its registry, such as a pull secret.",
	Fix:   "See what the message names.",
}

// absences are what says that a version, or a repository, is not there.
var absentCodes = []errcode.Code{
	remote.ErrRepositoryNotFound, remote.ErrTagNotFound, oci.ErrManifestNotFound, oci.ErrBlobMissing, oci.ErrPlatformNotFound, ErrUnqualified, ErrTagMoved, ErrUnusable,
}

// lookedUp tells a version that is not there, of which the solver does without, from
// something else that is not there.
func classifyLookup(err error, ref oci.Reference) error {
	if !isNotFound(err) || slices.ContainsFunc(absentCodes, func(c errcode.Code) bool { return errors.Is(err, c) }) {
		return err
	}
	return ErrLookup.New(err, "cannot look %s up", ref)
}

func isNotFound(err error) bool {
	return err != nil && errcode.From(err).Code.Class.Name == errcode.NotFound.Name
}

// flaws are what can be wrong with the content of a version itself.
var defects = []errcode.Code{
	oci.ErrNotAPackage, oci.ErrInvalidManifest, oci.ErrEmptyIndex, oci.ErrAmbiguousPlatform, oci.ErrIndexTooDeep, oci.ErrAmbiguousBaseLayer,
	oci.ErrForeignLayer, oci.ErrInvalidDigest, oci.ErrUnsupportedDigest, oci.ErrBrokenLayer, oci.ErrCompressionMismatch, oci.ErrNotATar,
	oci.ErrNoPackageYAML, oci.ErrNotRegularFile, oci.ErrDuplicateEntry,
}

// unusable tells a version that is wrong in itself, and is set aside, from a failure
// to read it, which ends everything: otherwise who keeps a version from being read
// decides that an older one is installed.
func isDefect(err error) bool {
	if err == nil {
		return false
	}
	if len(xpkg.Findings(err)) > 0 {
		class := errcode.From(err).Code.Class.Name
		return class == errcode.Invalid.Name || class == errcode.Unsupported.Name
	}
	return slices.ContainsFunc(defects, func(c errcode.Code) bool { return errors.Is(err, c) })
}

// vanished reports whether a digest is not in its repository any more.
func isManifestMissing(err error) bool { return errors.Is(err, oci.ErrManifestNotFound) }
