package resolver

import (
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Codes for dependencies. All of them have the class NotFound, because another version may
// not have the problem.
var (
	ErrUnqualified = errcode.Code{
		Name: "UnqualifiedDependency", Class: errcode.NotFound,
		Cause: "A dependency does not name its registry. A guess could select a package of another owner in a public registry.",
		Fix:   "Ask the author to name the registry, or set it with --default-registry.",
	}
	ErrTagMoved = errcode.Code{
		Name: "TagMoved", Class: errcode.NotFound,
		Cause: "A version is requested by its tag and its digest, but the tag has moved to other content, and the content with the digest no longer exists.",
		Fix:   "Determine why the tag has moved. To accept its new content, request that digest.",
	}
	ErrUnusable = errcode.Code{
		Name: "UnusableVersion", Class: errcode.NotFound,
		Cause: "A version cannot be installed: its manifest or its metadata is not valid.",
		Fix:   "Request another version, or ask the author to publish it again.",
	}
)

// ErrTooManyVersions is the code for a package with too many tried versions.
var ErrTooManyVersions = errcode.Code{
	Name: "TooManyVersions", Class: errcode.Limit,
	Cause: "Too many versions of a package conflict with other requirements. Older versions are not tried, because each requires a request.",
	Fix:   "Request an older version of the package, or relax the requirements that it conflicts with.",
}

func isNotFound(err error) bool {
	return err != nil && errcode.From(err).Code.Class.Name == errcode.NotFound.Name
}

// defects are the codes for invalid content of a version.
var defects = []errcode.Code{
	oci.ErrNotAPackage, oci.ErrInvalidManifest, oci.ErrEmptyIndex, oci.ErrAmbiguousPlatform, oci.ErrIndexTooDeep,
	oci.ErrAmbiguousBaseLayer,
	oci.ErrForeignLayer, oci.ErrInvalidDigest, oci.ErrUnsupportedDigest, oci.ErrBrokenLayer, oci.ErrCompressionMismatch,
	oci.ErrNotATar,
	oci.ErrNoPackageYAML, oci.ErrNotRegularFile, oci.ErrDuplicateEntry,
}

// isDefect reports whether an error is caused by the content of a version, which is then
// treated as missing. A failure to read a version is not a defect and ends the resolution;
// otherwise an attacker who blocks a version could cause a downgrade.
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
